// Parses each file as the kind of module that Node takes it for, without running it, and prints one line for each that
// cannot be read. With "loose", what looks like JSX or type annotations is said to be left to the build (no message).
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [mode, ...files] = process.argv.slice(1);
const kinds = new Map();

function packageType(folder) {
  if (!kinds.has(folder)) {
    let type = "";
    try {
      type = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8")).type || "commonjs";
    } catch (error) {
      const above = path.dirname(folder);
      type = above === folder ? "" : packageType(above);
    }
    kinds.set(folder, type);
  }
  return kinds.get(folder);
}

function asScript(text, file) {
  try {
    vm.compileFunction(text.replace(/^#!.*/, ""), ["exports", "require", "module", "__filename", "__dirname"], { filename: file });
    return null;
  } catch (error) {
    return error;
  }
}

function asModule(text, file) {
  try {
    new vm.SourceTextModule(text.replace(/^#!.*/, ""), { identifier: file, context: undefined });
    return null;
  } catch (error) {
    return error;
  }
}

function place(error, file) {
  // The error of a module has no place; a Node that only checks the file prints it.
  const own = String(error.stack || "").split("\n");
  const told = own.some((line) => line.startsWith(file + ":")) ? own : checked(file);
  const at = told.findIndex((line) => line.startsWith(file + ":"));
  const line = at < 0 ? 0 : Number(told[at].slice(file.length + 1).split(":")[0]) || 0;
  const marker = at < 0 ? "" : told[at + 2] || "";
  return { line, column: marker.includes("^") ? marker.indexOf("^") + 1 : 0 };
}

function checked(file) {
  const done = require("child_process").spawnSync(process.execPath, ["--no-warnings", "--check", file], { encoding: "utf8", timeout: 10000 });
  return String(done.stderr || "").split("\n").map((line) => (line.startsWith("file://") ? decodeURI(line.slice(7)) : line));
}

for (const file of files) {
  const text = fs.readFileSync(file, "utf8");
  const full = path.resolve(file);
  const type = packageType(path.dirname(full));
  const looksLikeModule = /^[ \t]*(?:import\s|import\{|export\s|export\{)/m.test(text);
  let error;
  if (file.endsWith(".mjs")) error = asModule(text, full);
  else if (file.endsWith(".cjs")) error = asScript(text, full);
  else if (type === "module") error = asModule(text, full);
  else {
    error = asScript(text, full);
    if (error && looksLikeModule) error = asModule(text, full);
  }
  if (!error) continue;
  const transformed = mode === "loose" && (/<\/?[A-Za-z>]/.test(text) || /^[ \t]*@/m.test(text) || /@flow/.test(text));
  const message = transformed ? "" : `${error.name}: ${error.message}`;
  console.log(JSON.stringify({ path: file, message, ...place(error, full) }));
}
