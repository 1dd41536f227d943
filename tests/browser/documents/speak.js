async ([url, steps]) => {
  const seen = [];
  let session = null;
  for (const [method, fields, message] of steps) {
    const headers = { Accept: "application/json, text/event-stream", ...fields };
    if (message !== null) headers["Content-Type"] = "application/json";
    if (session !== null) headers["Mcp-Session-Id"] = session;
    try {
      const body = message === null ? undefined : JSON.stringify(message);
      const response = await fetch(url, { method, headers, body });
      session = response.headers.get("Mcp-Session-Id") ?? session;
      const challenge = response.headers.get("WWW-Authenticate");
      seen.push([response.status, await response.text(), challenge]);
    } catch (error) {
      seen.push([0, String(error), null]);
    }
  }
  return [seen, session];
}
