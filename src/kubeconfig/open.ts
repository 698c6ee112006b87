import { commandLine } from '../errors/command-line.ts'
import { given } from '../errors/given.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { DocumentDefect } from './documents.ts'
import { isKubeconfig, type Kubeconfig, readKubeconfig } from './kubeconfig.ts'
import { readKubeconfigDocument } from './kubeconfig-document.ts'
import type { Node } from './node.ts'

export interface OpenedKubeconfig {
  readonly root: Node
  /** The readable parts of it. */
  readonly kubeconfig: Kubeconfig
  /** Why client-go cannot read it as YAML or JSON. */
  readonly malformed?: DocumentDefect
  /** Why client-go rejects the whole file: kubectl, kubelets and components do not start or connect with it. */
  readonly refusal?: string
}

/** Returns a kubeconfig as client-go reads it; undefined for other content. */
export async function openKubeconfig(content: Uint8Array | string): Promise<OpenedKubeconfig | undefined> {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content
  const { documents, defects } = await readKubeconfigDocument(bytes)
  const [root] = documents
  if (root === undefined || !isKubeconfig(root)) return undefined
  const kubeconfig = readKubeconfig(root)
  const [malformed] = defects
  const fatal = kubeconfig.defects.find(({ isFatal }) => isFatal)
  const refusal = malformed === undefined ? fatal && `${fatal.field}: ${fatal.reason}` : malformed.reason
  return {
    root,
    kubeconfig,
    ...given({ malformed, refusal }),
  }
}

/**
 * Returns a kubeconfig that client-go accepts. Throws KCERT_KUBECONFIG_UNUSABLE for any other content. `name` is the file in
 * messages.
 */
export async function usableKubeconfig(
  content: Uint8Array | string,
  name: string,
): Promise<OpenedKubeconfig> {
  const opened = await openKubeconfig(content)
  if (opened === undefined || opened.refusal !== undefined) throw unusableKubeconfig(name, opened?.refusal)
  return opened
}

/** Returns the error for a file that is not a kubeconfig, or that client-go rejects. */
export function unusableKubeconfig(name: string, refusal?: string): KcertError {
  const what =
    refusal === undefined ? `${name} is not a kubeconfig` : `client-go rejects the kubeconfig ${name}`
  return new KcertError('KCERT_KUBECONFIG_UNUSABLE', what, {
    why: refusal ?? 'it has no clusters, users or contexts',
    next: commandLine`kcert inspect ${name.slice(name.indexOf(':') + 1)}`,
  })
}
