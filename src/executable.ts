import { getAsset, getAssetKeys, getRawAsset } from 'node:sea'
import { loadScripts } from './cli/program-scripts.ts'
import { main } from './main.ts'

// The single executable (`npm run dist`): Node with the scripts of dist/ in it, and with what V8 has compiled of them.

const assets = new Set(getAssetKeys())
const scripts = loadScripts({
  has: (name) => assets.has(name),
  bytes: (name) => Buffer.from(getRawAsset(name)),
  code: (name) => (assets.has(`${name}.code`) ? new Uint8Array(getRawAsset(`${name}.code`)) : undefined),
  path: (name) => `kcert/dist/${name}`,
})

// What npm installs as a program of its own is here a link to this one: kubectl runs it to complete `kubectl kcert …`.
const completes = process.argv0.endsWith('kubectl_complete-kcert')
const line = [...(completes ? ['completion', 'kubectl'] : []), ...process.argv.slice(2)]

main(line, scripts, (name) => JSON.parse(getAsset(name, 'utf8'))).catch((error: Error) => {
  process.stderr.write(`KCERT_DEFECT: kcert cannot start: ${error.message}\nnext: fetch it again\n`)
  process.exitCode = 1
})
