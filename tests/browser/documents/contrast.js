() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue(name).trim().replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3");
    const part = (at) => {
      const value = parseInt(hex.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  };
  const contrast = (text, ground) => {
    const both = [light(text), light(ground)];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  };
  const pairs = [
    ["--text", "--surface"], ["--muted", "--surface"], ["--text", "--chosen"],
    ["--muted", "--chosen"], ["--text", "--code"], ["--bad", "--surface"], ["--bad", "--code"],
    ["--on-accent", "--accent"], ["--text", "--asked"], ["--told", "--surface"],
    ["--told", "--code"],
  ];
  return Math.min(...pairs.map((pair) => contrast(...pair)));
}
