#!/usr/bin/env node
// Starts kcert. Written for any Node: the version is checked before anything else is loaded.
const wanted = { major: 24, minor: 15 }
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < wanted.major || (major === wanted.major && minor < wanted.minor)) {
  process.stderr.write(
    `KCERT_NODE_TOO_OLD: kcert needs Node ${wanted.major}.${wanted.minor} or newer, but this is Node ${process.versions.node} (${process.execPath})\n` +
      'why: it relies on parts of node:crypto and node:module that older releases do not have\n' +
      'next: npx -y -p node@24 -p kcert kcert --help, or in a checkout: npm start -- --help\n',
  )
  process.exitCode = 2
} else {
  start().catch(explain)
}

async function start() {
  const root = __dirname.slice(0, -'/bin'.length)
  const { run } = require(`${root}/dist/main.js`)
  await run(process.argv.slice(2), root)
}

function explain(error) {
  const unbuilt = error.code === 'MODULE_NOT_FOUND' && /dist\/main\.js/.test(error.message)
  process.stderr.write(
    unbuilt
      ? 'KCERT_USAGE: kcert is not built in this checkout\nnext: npm run build\n'
      : `KCERT_DEFECT: kcert cannot start: ${error.message}\nnext: install it again, as README.md says\n`,
  )
  process.exitCode = unbuilt ? 2 : 1
}
