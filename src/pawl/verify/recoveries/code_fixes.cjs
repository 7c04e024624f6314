// Mends what the TypeScript language service can mend by itself: for each diagnostic whose code fixes are allowed, each fix is tried in
// memory and kept when the diagnostic is gone and nothing new has come. Prints the texts that changed and what was done.
const path = require("path");
const fs = require("fs");

const question = JSON.parse(process.argv[1]);
const root = process.cwd();
let ts;
try {
  ts = require(require.resolve("typescript", { paths: [root] }));
} catch (error) {
  console.log(JSON.stringify({ skipped: "typescript is not installed" }));
  process.exit(0);
}
if (!ts.createLanguageService) {
  console.log(JSON.stringify({ skipped: `TypeScript ${ts.version} has no language service that can be called` }));
  process.exit(0);
}

const config = ts.findConfigFile(root, ts.sys.fileExists, "tsconfig.json");
const read = config ? ts.readConfigFile(config, ts.sys.readFile) : { config: { compilerOptions: { allowJs: true } } };
const parsed = ts.parseJsonConfigFileContent(read.config, ts.sys, root);
const texts = new Map();
const versions = new Map();
const text = (file) => {
  if (!texts.has(file) && fs.existsSync(file)) texts.set(file, fs.readFileSync(file, "utf8"));
  return texts.get(file);
};
const host = {
  getScriptFileNames: () => parsed.fileNames,
  getScriptVersion: (file) => String(versions.get(file) || 0),
  getScriptSnapshot: (file) => (text(file) === undefined ? undefined : ts.ScriptSnapshot.fromString(text(file))),
  getCurrentDirectory: () => root,
  getCompilationSettings: () => parsed.options,
  getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
  fileExists: ts.sys.fileExists,
  readFile: ts.sys.readFile,
  readDirectory: ts.sys.readDirectory,
  directoryExists: ts.sys.directoryExists,
  getDirectories: ts.sys.getDirectories,
  realpath: ts.sys.realpath,
};
const service = ts.createLanguageService(host);
const format = { ...ts.getDefaultFormatCodeSettings("\n"), indentSize: 2 };
const message = (one) => ts.flattenDiagnosticMessageText(one.messageText, "\n");
const key = (one) => `${one.code} ${message(one)}`;
const found = (file) => [...service.getSyntacticDiagnostics(file), ...service.getSemanticDiagnostics(file)];
const editable = new Set(question.editable.map((one) => path.resolve(root, one)));
const rules = question.rules.map((rule) => ({ ...rule, patterns: rule.patterns.map((one) => new RegExp(one)) }));
const allowed = (one) => {
  const rule = rules.find((rule) => rule.patterns.some((pattern) => pattern.test(message(one))));
  return rule ? rule.fixes : [];
};
const counted = (files) => {
  const counts = new Map();
  for (const file of files) for (const one of found(file)) counts.set(key(one), (counts.get(key(one)) || 0) + 1);
  return counts;
};
const set = (file, value) => {
  texts.set(file, value);
  versions.set(file, (versions.get(file) || 0) + 1);
};

const originals = new Map();
const repairs = [];
const given = new Set();
const deadline = Date.now() + question.seconds * 1000;

function tried(file, target, fix) {
  const files = fix.changes.map((one) => one.fileName);
  if (files.some((one) => !editable.has(one)) || fix.changes.some((one) => one.isNewFile)) return false;
  const looked = [...new Set([file, ...files])];
  const before = counted(looked);
  const saved = files.map((one) => [one, text(one)]);
  for (const change of fix.changes) {
    let value = text(change.fileName);
    for (const edit of [...change.textChanges].sort((a, b) => b.span.start - a.span.start))
      value = value.slice(0, edit.span.start) + edit.newText + value.slice(edit.span.start + edit.span.length);
    set(change.fileName, value);
  }
  const after = counted(looked);
  const gone = (after.get(key(target)) || 0) < before.get(key(target));
  const fresh = [...after].some(([name, count]) => count > (before.get(name) || 0));
  if (gone && !fresh) {
    for (const [one, value] of saved) if (!originals.has(one)) originals.set(one, value);
    return true;
  }
  for (const [one, value] of saved) set(one, value);
  return false;
}

function once() {
  for (const file of parsed.fileNames.filter((one) => editable.has(one))) {
    for (const target of found(file)) {
      const names = allowed(target);
      const place = `${file} ${key(target)} ${target.start}`;
      if (!names.length || given.has(place) || Date.now() > deadline) continue;
      given.add(place);
      const offered = service.getCodeFixesAtPosition(file, target.start, target.start + target.length, [target.code], format, {});
      const fixes = offered.filter((one) => names.includes(one.fixName));
      fixes.sort((a, b) => names.indexOf(a.fixName) - names.indexOf(b.fixName));
      const imports = fixes.filter((one) => one.fixName === "import");
      for (const fix of fixes.slice(0, 6)) {
        const line = ts.getLineAndCharacterOfPosition(service.getProgram().getSourceFile(file), target.start).line + 1;
        if (tried(file, target, fix)) {
          const rivals = fix.fixName === "import" ? imports.length - 1 : 0;
          repairs.push({ path: path.relative(root, file), line, code: target.code, fix: fix.fixName, why: fix.description, rivals });
          return true;
        }
      }
    }
  }
  return false;
}

while (repairs.length < question.most && once());
const changed = {};
for (const [file, value] of originals) if (text(file) !== value) changed[path.relative(root, file)] = text(file);
console.log(JSON.stringify({ repairs, changed }));
