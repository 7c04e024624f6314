'use strict';
// Writes what Node cannot read with `require` in words that it can, with what the project has: jest's transforms, the
// TypeScript compiler, or esbuild.

async function transformFor(state, own, jest) {
  if (jest) return byJest(state, own, jest);
  const tries = [byCompiler, byEsbuild];
  for (const one of tries) {
    const found = one(own);
    if (found) return found;
  }
  return (filename) => {
    throw new Error(`${filename}: nothing is installed that could transform it`);
  };
}

async function byJest(state, own, config) {
  const Module = require('node:module');
  const near = ['jest', '@jest/core'].reduce((from, name) => Module.createRequire(from.resolve(name)), own);
  const made = await near('@jest/transform').createScriptTransformer(config);
  const supports = ['DynamicImport', 'ExportNamespaceFrom', 'StaticESM', 'TopLevelAwait'].map((name) => [`supports${name}`, false]);
  return (filename, text) => {
    if (/\bjest\s*\.\s*(mock|doMock|unmock)\b/.test(text)) state.lacking = 'jest.mock has no stand-in';
    return made.transformSource(filename, text, { instrument: false, ...Object.fromEntries(supports) }).code;
  };
}

function byCompiler(own) {
  let compiler;
  try {
    compiler = own('typescript');
  } catch (error) {
    return null;
  }
  if (!compiler.transpileModule) return null;
  const { ModuleKind, ScriptTarget, JsxEmit } = compiler;
  const settings = { module: ModuleKind.CommonJS, target: ScriptTarget.ES2022, esModuleInterop: true, jsx: JsxEmit.ReactJSX };
  const compilerOptions = { ...settings, experimentalDecorators: true, inlineSourceMap: false, isolatedModules: true };
  return (fileName, text) => compiler.transpileModule(text, { fileName, compilerOptions, reportDiagnostics: false }).outputText;
}

function byEsbuild(own) {
  let esbuild;
  try {
    esbuild = own('esbuild');
  } catch (error) {
    return null;
  }
  return (filename, text) => {
    const loader = /\.(tsx|jsx)$/.exec(filename)?.[1] || (/\.[mc]?ts$/.test(filename) ? 'ts' : 'js');
    return esbuild.transformSync(text, { loader, format: 'cjs', target: 'es2022', jsx: 'automatic', sourcefile: filename }).code;
  };
}

module.exports = { transformFor };
