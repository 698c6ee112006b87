import type { Context } from '../../cli/context.ts'
import { argumentVector, commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { type NamedPolicies, namedPolicies } from '../csr/policies.ts'
import type { WatchSettings } from './watch/watcher.ts'

/** What --approve names: built-in policies, or a file. */
export interface ApprovedBy extends NamedPolicies {
  readonly name: string
}

/** The flags that enable the parts of the controller. */
interface EnabledFlags {
  readonly approve?: string | undefined
  readonly watch: boolean
  readonly 'watch-secrets': boolean
}

/** What the flags of the controller enable. */
export interface Enabled {
  readonly approve?: ApprovedBy | undefined
  readonly watch?: Pick<WatchSettings, 'readSecrets'> | undefined
}

/** Throws KCERT_USAGE for flags that enable nothing. */
export function checkEnabled({ approve, watch }: EnabledFlags): void {
  if (approve !== undefined || watch) return
  throw new KcertError('KCERT_USAGE', 'nothing to do: --approve and --watch are missing', {
    why: 'the controller does only what its flags enable',
    next: '--approve builtin',
  })
}

/** Reads them for a command that does not run the controller. Throws as `checkEnabled` and `namedPolicies`. */
export async function enabledBy(flags: EnabledFlags, context: Context): Promise<Enabled> {
  checkEnabled(flags)
  const { approve: name, watch, 'watch-secrets': readSecrets } = flags
  return {
    approve: name === undefined ? undefined : { name, ...(await namedPolicies(name, context)) },
    watch: watch ? { readSecrets } : undefined,
  }
}

/** Throws KCERT_USAGE for a value that is not the name of a namespace. */
export function checkNamespace(name: string, flag = '--namespace'): void {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) return
  throw new KcertError('KCERT_USAGE', `invalid ${flag} ${JSON.stringify(name)}`, {
    why: 'a namespace has lowercase letters, digits and hyphens, at most 63, and begins and ends with a letter or digit',
    next: commandLine`${argumentVector([flag, 'kube-system'])}`,
  })
}
