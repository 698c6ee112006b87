import { createPublicKey, type KeyObject } from 'node:crypto'
import { orUndefined } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { FileContent } from '../pki/node-access.ts'
import { keyMaterial, keyPaths, privatePath } from '../rotation/service-account-key/keys.ts'
import { isPlanned } from '../rotation/target.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import { unreadableFile } from '../site/node-files.ts'
import {
  isPrivateKeyLabel,
  isPublicKeyLabel,
  readPrivateKey,
  readPrivateKeyFile,
  readPublicKey,
} from '../x509/keys.ts'
import { replacementKey } from '../x509/new-key.ts'
import { type PemBlock, readPem } from '../x509/pem.ts'

/**
 * The service account keys of a rotation. The new key exists only in the memory of this process and in files on control-plane nodes.
 * It is created once: later runs, or a run after a crash, find it where the first run wrote it.
 */
export class RotationKeys {
  private readonly planes: Pick<ControlPlanes, 'everyApiServer' | 'node'>
  private made: Promise<KeyObject> | undefined

  constructor(planes: Pick<ControlPlanes, 'everyApiServer' | 'node'>) {
    this.planes = planes
  }

  /** Returns the new key. Throws KCERT_ROTATION_REFUSED when the type of the old one is unknown. */
  newKey(): Promise<KeyObject> {
    this.made ??= this.findOrCreate()
    this.made.catch(() => {
      this.made = undefined
    })
    return this.made
  }

  async isNewKey(content: Uint8Array): Promise<boolean> {
    const key = orUndefined(() => readPrivateKeyFile(content).keyObject)
    return key !== undefined && digestOf(key) === digestOf(await this.newKey())
  }

  /** Returns the public keys with these digests in PEM, in this order. Throws KCERT_ROTATION_DRIFT when no node has one of them. */
  async publicKeys(digests: readonly string[]): Promise<string> {
    const known = new Map((await this.present()).map((key) => [digestOf(key), key]))
    const keys = []
    for (const digest of digests) {
      const key = isPlanned({ digest })
        ? await this.newKey()
        : (known.get(digest) ?? (await this.ifNew(digest)))
      if (key === undefined)
        throw new KcertError('KCERT_ROTATION_DRIFT', `public key ${digest} was not found on any node`, {
          why: 'it existed when kcert planned; the file that contained it has changed since',
          next: 'kcert rotate-sa-key',
        })
      keys.push(publicOf(key).export({ type: 'spki', format: 'pem' }).toString())
    }
    return keys.join('')
  }

  private async ifNew(digest: string): Promise<KeyObject | undefined> {
    const key = await this.newKey()
    return digestOf(key) === digest ? key : undefined
  }

  /** A file that cannot be read may have the key, so nothing is created then. */
  private async findOrCreate(): Promise<KeyObject> {
    let old: KeyObject | undefined
    for (const { files, newKey, signing } of await this.files()) {
      const found = keyIn(files.find(({ path }) => path === newKey))
      if (found !== undefined) return found
      old ??= keyIn(files.find(({ path }) => path === signing))
    }
    if (old === undefined)
      throw new KcertError('KCERT_ROTATION_REFUSED', 'no control-plane node has the service account key', {
        why: 'the new key gets the type of the old one; check --service-account-signing-key-file of API servers',
        next: 'kcert rotate-sa-key plan',
      })
    return replacementKey(readPublicKey(der(old)))
  }

  private async present(): Promise<readonly KeyObject[]> {
    const all = await this.files()
    return all.flatMap(({ files }) =>
      files.flatMap((file) => (file.found === 'file' ? keysIn(file.content) : [])),
    )
  }

  private async files() {
    const found = []
    for (const { node, flags } of await this.planes.everyApiServer()) {
      const api = { name: 'kube-apiserver', flags } as const
      const { newKey, oldPublicKey } = keyMaterial(api)
      const signing = privatePath(api)
      const others = keyPaths(api).filter((path) => path.startsWith('/'))
      const files = await this.planes.node(node).readFiles([newKey, oldPublicKey, ...others])
      const unread = files.find((file) => file.found === 'unreadable')
      if (unread !== undefined) throw unreadableFile(node, unread.path, unread.reason)
      found.push({ files, newKey, signing })
    }
    return found
  }
}

function keyIn(file: FileContent | undefined): KeyObject | undefined {
  return file?.found === 'file' ? orUndefined(() => readPrivateKeyFile(file.content).keyObject) : undefined
}

function keysIn(content: Uint8Array): readonly KeyObject[] {
  const blocks = orUndefined(() => readPem(content).blocks) ?? []
  return blocks.flatMap((block) => orUndefined(() => keyOf(block)) ?? [])
}

function keyOf(block: PemBlock): KeyObject | undefined {
  if (isPrivateKeyLabel(block.label)) return readPrivateKey(block).keyObject
  if (!isPublicKeyLabel(block.label)) return undefined
  const type = block.label === 'PUBLIC KEY' ? 'spki' : 'pkcs1'
  return createPublicKey({ key: Buffer.from(block.der), format: 'der', type })
}

function publicOf(key: KeyObject): KeyObject {
  return key.type === 'private' ? createPublicKey(key) : key
}

function der(key: KeyObject): Buffer {
  return publicOf(key).export({ type: 'spki', format: 'der' })
}

function digestOf(key: KeyObject): string {
  return readPublicKey(der(key)).sha256
}
