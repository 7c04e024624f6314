// Mends what the TypeScript language service can mend by itself: for each diagnostic whose code fixes are allowed, each fix is tried in
// memory and kept when the diagnostic is gone and nothing new has come. Prints the texts that changed, what was done, and for one diagnostic
// that can be mended in ways that mean different things the rivals, of which none is taken.
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

// What the files would be with a fix, if it makes the diagnostic go away and brings nothing new; else nothing. Leaves all as it was.
function trial(file, target, fix) {
  const files = fix.changes.map((one) => one.fileName);
  if (files.some((one) => !editable.has(one)) || fix.changes.some((one) => one.isNewFile)) return undefined;
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
  const texts = files.map((one) => [one, text(one)]);
  for (const [one, value] of saved) set(one, value);
  const gone = (after.get(key(target)) || 0) < before.get(key(target));
  const fresh = [...after].some(([name, count]) => count > (before.get(name) || 0));
  return gone && !fresh ? texts : undefined;
}

// What an import leads to: the place of the declaration, so that a module and another that passes it on are one.
function meaning(file, target, fix) {
  const from = /from "(.+)"/.exec(fix.description);
  if (fix.fixName !== "import" || !from) return fix.description;
  const resolved = ts.resolveModuleName(from[1], file, parsed.options, ts.sys).resolvedModule;
  const checker = service.getProgram().getTypeChecker();
  const source = resolved && service.getProgram().getSourceFile(resolved.resolvedFileName);
  const owner = source && checker.getSymbolAtLocation(source);
  const name = text(file).slice(target.start, target.start + target.length);
  const exported = owner ? checker.getExportsOfModule(owner) : [];
  let found = exported.find((one) => one.name === name) || exported.find((one) => one.name === "default");
  if (found && found.flags & ts.SymbolFlags.Alias) found = checker.getAliasedSymbol(found);
  const place = found && found.declarations && found.declarations[0];
  return place ? `${place.getSourceFile().fileName} ${place.pos}` : fix.description;
}

// The fixes of the first kind that mends anything, one for each thing that may be meant.
function options(file, target, names) {
  const offered = service.getCodeFixesAtPosition(file, target.start, target.start + target.length, [target.code], format, {});
  for (const name of names) {
    const found = new Map();
    for (const fix of offered.filter((one) => one.fixName === name).slice(0, 6)) {
      const texts = trial(file, target, fix);
      const meant = texts && meaning(file, target, fix);
      if (texts && !found.has(meant)) found.set(meant, { fix: fix.fixName, why: fix.description, texts });
    }
    if (found.size) return [...found.values()];
  }
  return [];
}

const lineOf = (file, target) => ts.getLineAndCharacterOfPosition(service.getProgram().getSourceFile(file), target.start).line + 1;

// Mends one diagnostic of which it is clear how. What may be meant in several ways is left for the end.
function once(disputed) {
  for (const file of parsed.fileNames.filter((one) => editable.has(one))) {
    for (const target of found(file)) {
      const names = allowed(target);
      const place = `${file} ${key(target)} ${target.start}`;
      if (!names.length || given.has(place) || Date.now() > deadline) continue;
      const ways = options(file, target, names);
      if (ways.length > 1 && disputed === undefined) continue;
      given.add(place);
      if (!ways.length) continue;
      const about = { path: path.relative(root, file), line: lineOf(file, target), code: target.code };
      if (ways.length > 1) {
        disputed.push(...ways.map((one) => ({ ...about, ...one, texts: Object.fromEntries(one.texts.map(([name, value]) => [path.relative(root, name), value])) })));
        return false;
      }
      for (const [one, value] of ways[0].texts) {
        if (!originals.has(one)) originals.set(one, text(one));
        set(one, value);
      }
      repairs.push({ ...about, fix: ways[0].fix, why: ways[0].why });
      return true;
    }
  }
  return false;
}

while (repairs.length < question.most && once());
const rivals = [];
once(rivals);
const changed = {};
for (const [file, value] of originals) if (text(file) !== value) changed[path.relative(root, file)] = text(file);
console.log(JSON.stringify({ repairs, changed, rivals }));
