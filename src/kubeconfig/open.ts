import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import type { DocumentDefect } from './documents.ts'
import { isKubeconfig, type Kubeconfig, readKubeconfig } from './kubeconfig.ts'
import { readKubeconfigDocument } from './kubeconfig-document.ts'
import type { Node } from './node.ts'

export interface OpenedKubeconfig {
  readonly root: Node
  /** What could be read of it. */
  readonly kubeconfig: Kubeconfig
  /** Why it is no YAML or JSON that client-go takes. */
  readonly malformed?: DocumentDefect
  /** Why client-go refuses the whole file: kubectl, kubelets and components then do not start or connect with it. */
  readonly refusal?: string
}

/** Returns a kubeconfig as client-go reads it; undefined for content that is none. */
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
    ...(malformed === undefined ? {} : { malformed }),
    ...(refusal === undefined ? {} : { refusal }),
  }
}

/** Returns a kubeconfig that client-go takes. Throws KCERT_KUBECONFIG_UNUSABLE for any other content; `name` is the file in messages. */
export async function usableKubeconfig(
  content: Uint8Array | string,
  name: string,
): Promise<OpenedKubeconfig> {
  const opened = await openKubeconfig(content)
  if (opened === undefined || opened.refusal !== undefined) throw unusableKubeconfig(name, opened?.refusal)
  return opened
}

/** Returns the error of a file that is no kubeconfig, or one that client-go refuses. */
export function unusableKubeconfig(name: string, refusal?: string): KcertError {
  const what =
    refusal === undefined ? `${name} is not a kubeconfig` : `client-go rejects the kubeconfig ${name}`
  return new KcertError('KCERT_KUBECONFIG_UNUSABLE', what, {
    why: refusal ?? 'it has no clusters, users or contexts',
    next: commandLine`kcert inspect ${name.slice(name.indexOf(':') + 1)}`,
  })
}
