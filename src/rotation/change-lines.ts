import { given } from '../errors/given.ts'
import type { FlagChanges, Flags } from '../pki/component-flags.ts'
import type { Action, PatchObject, WriteFile } from './action.ts'
import type { Digest } from './certificate-record.ts'
import { leafIn } from './leaves.ts'
import { keyIdFor } from './service-account-key/key-id.ts'
import { certificatesIn, type FileSnapshot, fileAt, isBundleOf, type Snapshot } from './snapshot.ts'
import { type CaName, changeOf, isPlanned, type Target } from './target.ts'

// The lines that an action removes ("- ") and adds ("+ "), without secrets: the name and the start of the digest for a
// certificate, and only the owner for a key.

/** Returns the lines of a change; empty for an action that changes no file or object. */
export function changeLines(action: Action, observed: Snapshot, target: Target): readonly string[] {
  if (action.kind === 'write-file') return fileLines(action, observed, target)
  return action.kind === 'patch-object' ? objectLines(action, observed) : []
}

function fileLines(action: WriteFile, observed: Snapshot, target: Target): readonly string[] {
  const { node, path, content } = action
  const file = fileAt(observed, node, path)
  switch (content.kind) {
    case 'certificates':
      return certificateLines(observed, certificatesIn(file), content.certificates)
    case 'ca-key':
      return [`+ private key of the ${content.generation} ${content.ca} CA${ofType(content)}`]
    case 'service-account-key':
      return ['+ the new private key']
    case 'public-keys': {
      const now = file?.contains.kind === 'public-keys' ? file.contains.keys : []
      const line = (digest: Digest): string => `public key with key ID ${keyIdFor(digest)}`
      return [
        ...now.filter((one) => !content.keys.includes(one)).map((one) => `- ${line(one)}`),
        ...content.keys.map((one) => `+ ${line(one)}`),
      ]
    }
    case 'reissued': {
      const chain = content.chain.map((digest) => `+ ${named(observed, digest)}`)
      return [...leafLines(observed, file, content.ca, target, content), ...chain]
    }
    case 'kubeconfig': {
      const cas = certificateLines(observed, certificatesIn(file), content.caData).map(
        (line) => `${line.slice(0, 2)}certificate-authority-data: ${line.slice(2)}`,
      )
      return content.reissue === undefined
        ? cas
        : [...cas, ...leafLines(observed, file, 'cluster', target, content)]
    }
    case 'definition': {
      const now = observed.components.find((one) => one.node === node && one.definition === path)
      const annotation = (name: string, value: string) => `annotation ${name}: ${JSON.stringify(value)}`
      return [
        ...valueLines(now?.flags, content.flags, (name, value) => `--${name}=${value}`),
        ...valueLines(now?.annotations, content.annotations, annotation),
      ]
    }
    case 'requested':
      return [`+ ${content.usage} certificate signed by the cluster for the node`]
    case 'copies':
      return [`+ copies of ${content.of.length} files`]
    case 'copies-over':
      return ['the copies stay; the next rotation creates its own']
    case 'copy':
      return [
        `+ the copy: sha256 ${content.digest.slice(0, 12)}`,
        ...(content.key === undefined
          ? []
          : [`+ ${content.key.path}: the copy: sha256 ${content.key.digest.slice(0, 12)}`]),
      ]
    case 'link':
      return [...(file?.linksTo === undefined ? [] : [`- -> ${file.linksTo}`]), `+ -> ${content.to}`]
    case 'nothing':
      return file === undefined ? [] : ['- the file']
  }
}

function objectLines({ object, change }: PatchObject, observed: Snapshot): readonly string[] {
  switch (change.kind) {
    case 'ca-bundle': {
      const bundle = observed.caBundles.find((one) => isBundleOf(one, object, change.field))
      return certificateLines(observed, bundle?.trust ?? [], change.trust)
    }
    case 'cluster-info':
      return certificateLines(observed, observed.clusterInfo?.trust ?? [], change.trust)
    case 'extra-args': {
      const now = observed.kubeadm?.extraArgs[change.component]
      return valueLines(now, change.flags, (name, value) => `${change.component}.extraArgs ${name}=${value}`)
    }
    case 'encryption-algorithm': {
      const now = given({ encryptionAlgorithm: observed.kubeadm?.encryptionAlgorithm })
      return valueLines(now, { encryptionAlgorithm: change.keyType }, (name, value) => `${name}: ${value}`)
    }
    case 'token-secret':
      return [`+ a token of service account ${change.serviceAccount}`]
    case 'delete':
      return ['- the object']
    case 'copy':
      return [
        change.digest === undefined ? '- the object' : `+ the copy: sha256 ${change.digest.slice(0, 12)}`,
      ]
  }
}

function valueLines(
  now: Flags | undefined,
  wanted: FlagChanges | undefined,
  text: (name: string, value: string) => string,
): readonly string[] {
  return Object.entries(wanted ?? {}).flatMap(([name, value]) => {
    const before = now?.[name]
    if ((before ?? null) === value) return []
    return [
      ...(before === undefined ? [] : [`- ${text(name, before)}`]),
      ...(value === null ? [] : [`+ ${text(name, value)}`]),
    ]
  })
}

function certificateLines(
  observed: Snapshot,
  now: readonly Digest[],
  wanted: readonly Digest[],
): readonly string[] {
  const lines = [
    ...now.filter((digest) => !wanted.includes(digest)).map((digest) => `- ${named(observed, digest)}`),
    ...wanted.filter((digest) => !now.includes(digest)).map((digest) => `+ ${named(observed, digest)}`),
  ]
  const isMoved = lines.length === 0 && now.join() !== wanted.join()
  return isMoved ? [`+ order: ${wanted.map((digest) => named(observed, digest)).join(', ')}`] : lines
}

function leafLines(
  observed: Snapshot,
  file: FileSnapshot | undefined,
  ca: CaName,
  target: Target,
  content: { readonly newKey?: true | string; readonly keyType?: string },
): readonly string[] {
  const leaf = leafIn(observed, file)
  const newCa = changeOf(target, ca)?.newCa.subject ?? ''
  if (leaf === undefined) return []
  const key = content.newKey === undefined ? 'same key' : `new key${ofType(content)}`
  return [`- ${leaf.subject} signed by ${leaf.issuer}`, `+ ${leaf.subject} signed by ${newCa}, ${key}`]
}

function ofType({ keyType }: { readonly keyType?: string }): string {
  return keyType === undefined ? '' : ` (${keyType})`
}

function named(observed: Snapshot, digest: Digest): string {
  const record = observed.certificates.get(digest)
  const name = record === undefined ? '(not read)' : record.subject
  const isBridge = record?.isCa === true && record.issuer !== record.subject
  const by = isBridge ? ` cross-signed by ${record.issuer}` : ''
  return `${name}${by} (${isPlanned({ digest }) ? 'created in phase 1' : `sha256 ${digest.slice(0, 12)}`})`
}
