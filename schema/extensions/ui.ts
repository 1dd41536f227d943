// Extension Identifier: io.modelcontextprotocol/ui
// Messages: none
//
// MCP Apps: what servers and clients tell each other of the user interfaces of tools. Messages
// between a host and the document that it shows (`ui/initialize`, ...) pass between two windows of a
// browser and never over a connection of MCP.

/** Settings of a client that shows user interfaces. */
export interface McpUiClientCapabilities {
  /** The MIME types of documents that it shows, such as `text/html;profile=mcp-app`. */
  mimeTypes?: string[];
}

/** Who may call a tool: the model, or the user interface that the tool's server gave. */
export type McpUiToolVisibility = "model" | "app";

/** The member `ui` in `_meta` of a tool. */
export interface McpUiToolMeta {
  /** URI of the document that shows results of the tool. */
  resourceUri?: string;
  /** Who may call the tool; both by default. */
  visibility?: McpUiToolVisibility[];
}

/** The origins that a user interface may use; where there are none, nothing is allowed. */
export interface McpUiResourceCsp {
  /** Origins of network requests. */
  connectDomains?: string[];
  /** Origins of scripts, styles, images, fonts and media. */
  resourceDomains?: string[];
  /** Origins of frames inside. */
  frameDomains?: string[];
  /** Origins of base URIs. */
  baseUriDomains?: string[];
}

/** The capabilities of a browser that a user interface asks for. */
export interface McpUiResourcePermissions {
  /** Pictures of the camera. */
  camera?: {};
  /** Sound of the microphone. */
  microphone?: {};
  /** The place of the device. */
  geolocation?: {};
  /** Writing to the clipboard. */
  clipboardWrite?: {};
}

/** The member `ui` in `_meta` of a document's resource. */
export interface McpUiResourceMeta {
  /** The origins that the document may use. */
  csp?: McpUiResourceCsp;
  /** The capabilities of a browser that it asks for. */
  permissions?: McpUiResourcePermissions;
  /** The origin that the document wants to have; its form depends on the host. */
  domain?: string;
  /** Whether it wants a visible border; without it the host decides. */
  prefersBorder?: boolean;
}
