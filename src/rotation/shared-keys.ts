import { given } from '../errors/given.ts'
import { shortList } from '../errors/short-list.ts'
import { isOfOldCa, leafFlags, oldApiLeaves } from './leaves.ts'
import { keyPathFor } from './material.ts'
import type { Refusal } from './phase.ts'
import { type ComponentSnapshot, fileAt, fileKey, type Observed, onNode } from './snapshot.ts'
import { changeOf, type Target } from './target.ts'

/** A key file, and the certificate that belongs to it, if a flag names both. */
interface KeyUse {
  readonly at: string
  readonly node: string
  readonly key: string | undefined
  readonly certificate?: string
}

/**
 * Refuses a new key in a file with another use: the certificate of that use would not match it, or API servers would reject all tokens
 * of service accounts.
 */
export function sharedKeyFiles(
  observed: Observed<'components' | 'kubelets' | 'files'>,
  target: Target,
): readonly Refusal[] {
  if (!target.newKeys) return []
  const change = changeOf(target, 'cluster')
  const ofKubelets = observed.kubelets.map(({ id, node, servingFile, servingKeyFile }): KeyUse => {
    const key = servingKeyFile ?? (servingFile && keyPathFor(servingFile))
    return { at: `${id} --tls-private-key-file`, node, key, ...given({ certificate: servingFile }) }
  })
  const replaced = [
    ...oldApiLeaves(observed, target).map(({ api: { node, flags }, role, file: { path } }) => {
      return { node, certificate: path, key: flags[leafFlags[role].key] ?? keyPathFor(path) }
    }),
    ...ofKubelets.filter(({ node, certificate }) => {
      return change && isOfOldCa(observed, fileAt(observed, node, certificate), change)
    }),
  ]
  const uses = [...observed.components.flatMap(usesOf), ...ofKubelets]
  const found = replaced.flatMap(({ node, certificate, key }) =>
    onNode(uses, node)
      .filter((use) => key !== undefined && use.key === key && use.certificate !== certificate)
      .map(({ at }) => `${fileKey(node, key ?? '')} (${at})`),
  )
  if (found.length === 0) return []
  return [
    {
      what: `new keys would replace keys that have another use: ${shortList([...new Set(found)])}`,
      why: 'the other certificate would not match its key at the next start, or API servers would reject service account tokens. Use a separate key file for each certificate and for tokens, or rotate without new keys (--algorithm, --new-keys)',
      next: 'kcert rotate-ca plan',
    },
  ]
}

/** Returns every value of a flag, because any of them may be the path of a key. */
function usesOf({ id, node, name, flags }: ComponentSnapshot): readonly KeyUse[] {
  const uses = Object.entries(flags).map(([flag, key]): KeyUse => {
    const leaf = Object.values(leafFlags).find((one) => one.key === flag)
    return { at: `${id} --${flag}`, node, key, ...(leaf && given({ certificate: flags[leaf.flag] })) }
  })
  // An API server that signs tokens verifies them with its serving key by default (kubernetes, pkg/controlplane/apiserver/options).
  const isDefault =
    name === 'kube-apiserver' &&
    'service-account-signing-key-file' in flags &&
    !('service-account-key-file' in flags)
  if (!isDefault) return uses
  return [
    ...uses,
    { at: `${id}, which has no --service-account-key-file`, node, key: flags['tls-private-key-file'] },
  ]
}
