#!/usr/bin/env node
// Starts kcert. Written for any Node that reads modules: the version is checked before anything is imported.
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
  const cache = ownCacheFolder()
  if (cache) process.getBuiltinModule('node:module').enableCompileCache(cache)
  await import('../dist/main.js')
}

// Compiled code is read back as code, so it lies only where no other user can have put it: never in /tmp.
function ownCacheFolder() {
  const base = process.env.XDG_CACHE_HOME || (process.env.HOME && `${process.env.HOME}/.cache`)
  const absolute = typeof base === 'string' && base[0] === '/'
  if (!absolute || !process.getuid) return undefined
  const { lstatSync, mkdirSync, statSync } = process.getBuiltinModule('node:fs')
  const folder = `${base}/kcert`
  // One level at a time: mkdir's own recursion never ends on /proc, where nothing can be made. And a home that is not there
  // (/nonexistent of Debian's service accounts) is not made.
  const levels = process.env.XDG_CACHE_HOME ? [folder] : [base, folder]
  try {
    for (const level of levels)
      if (!statSync(level, { throwIfNoEntry: false })) mkdirSync(level, { mode: 0o700 })
    const { uid, mode } = lstatSync(folder)
    const own = uid === process.getuid() && (mode & 0o022) === 0
    return own ? folder : undefined
  } catch {
    return undefined
  }
}

function explain(error) {
  const unbuilt = error.code === 'ERR_MODULE_NOT_FOUND' && /dist\/main\.js/.test(error.message)
  process.stderr.write(
    unbuilt
      ? 'KCERT_USAGE: kcert is not built in this checkout\nnext: npm run build\n'
      : `KCERT_DEFECT: kcert cannot start: ${error.message}\nnext: install it again: npm install -g kcert\n`,
  )
  process.exitCode = unbuilt ? 2 : 1
}
