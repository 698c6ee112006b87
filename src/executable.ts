import { getAsset, getAssetKeys, getRawAsset } from 'node:sea'
import { loadScripts } from './cli/program-scripts.ts'
import { main } from './main.ts'

// The single executable (`npm run dist`): Node.js with the scripts of dist/ and V8's compiled code for them.

const assets = new Set(getAssetKeys())
const parts = Buffer.from(getRawAsset('parts'))
const scripts = loadScripts({
  has: (name) => assets.has(name) || assets.has(`${name}.zst`),
  bytes,
  code: compiledCode,
  path: (name) => `kcert/dist/${name}`,
})

/** Returns a script, assembled from its parts (scripts/release/executable.ts). Several scripts share parts. */
function bytes(name: string): Buffer {
  const whole = decompressed(`${name}.zst`)
  if (whole !== undefined) return whole
  const places = Buffer.from(getRawAsset(name))
  const own: Buffer[] = []
  for (let at = 0; at < places.length; at += 8)
    own.push(parts.subarray(places.readUInt32LE(at), places.readUInt32LE(at + 4)))
  return Buffer.concat(own)
}

function compiledCode(name: string): Uint8Array | undefined {
  const asset = `${name}.code`
  return assets.has(asset) ? new Uint8Array(getRawAsset(asset)) : decompressed(`${asset}.zst`)
}

function decompressed(asset: string): Buffer | undefined {
  if (!assets.has(asset)) return undefined
  const { zstdDecompressSync } = process.getBuiltinModule('node:zlib')
  return zstdDecompressSync(new Uint8Array(getRawAsset(asset)))
}

// npm installs a separate program for this, but here it is a link to this executable: kubectl runs it to complete `kubectl kcert
// …`.
const completes = process.argv0.endsWith('kubectl_complete-kcert')
const line = [...(completes ? ['completion', 'kubectl'] : []), ...process.argv.slice(2)]

main(line, scripts, (name) => JSON.parse(getAsset(name, 'utf8'))).catch((error: Error) => {
  process.stderr.write(`KCERT_DEFECT: kcert cannot start: ${error.message}\nfix: fetch it again\n`)
  process.exitCode = 1
})
