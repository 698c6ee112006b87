import type { ControllerManager } from './facts.ts'
import type { Situation } from './situation.ts'

// Whether kube-controller-manager runs and can approve or sign.

/** Its Lease lasts 15 s and is renewed within 10: after four times that, its holder no longer runs. */
const staleMs = 60_000

/** Returns whether it runs; undefined when that is unknown. */
export function isManagerAlive({ controllerManager, now }: Situation): boolean | undefined {
  if (controllerManager === undefined) return undefined
  if (controllerManager === 'absent') return false
  const { renewedAt } = controllerManager
  return renewedAt === undefined ? undefined : now.getTime() - renewedAt.getTime() < staleMs
}

/** Returns the evidence for that, as a fragment. */
export function managerText({ controllerManager }: Situation): string {
  if (typeof controllerManager !== 'object') return 'it has no Lease in kube-system'
  const { renewedAt, holder } = controllerManager
  const last = `its Lease was last renewed at ${renewedAt?.toISOString().slice(0, 19)}Z`
  return holder === undefined ? last : `${last} by ${holder}`
}

const controllerNames = {
  approving: ['csrapproving', 'certificatesigningrequest-approving-controller'],
  signing: ['csrsigning', 'certificatesigningrequest-signing-controller'],
} as const

/**
 * True when its known --controllers disables this controller. A controller that is not listed runs with "*" or without the flag.
 */
export function isControllerOff(
  { controllerManager }: Situation,
  controller: keyof typeof controllerNames,
): boolean {
  const controllers = flagOf(controllerManager, 'controllers')?.split(',')
  if (controllers === undefined) return false
  const names = controllerNames[controller]
  if (names.some((name) => controllers.includes(name))) return false
  return names.some((name) => controllers.includes(`-${name}`)) || !controllers.includes('*')
}

/** The flags for the CA of one signer, instead of the common one (k8s.io/kubernetes cmd/kube-controller-manager). */
const signerFlags: Readonly<Record<string, string>> = {
  'kubernetes.io/kubelet-serving': 'kubelet-serving',
  'kubernetes.io/kube-apiserver-client-kubelet': 'kubelet-client',
  'kubernetes.io/kube-apiserver-client': 'kube-apiserver-client',
  'kubernetes.io/legacy-unknown': 'legacy-unknown',
}

/** True when its command line is known and has no CA for this signer, so that it does not run that signer. */
export function lacksSigningFiles({ controllerManager, object }: Situation): boolean {
  if (typeof controllerManager !== 'object' || controllerManager.commandLine === undefined) return false
  const own = signerFlags[object.signerName]
  const has = (prefix: string): boolean =>
    Boolean(flagOf(controllerManager, `${prefix}-cert-file`)) &&
    Boolean(flagOf(controllerManager, `${prefix}-key-file`))
  return !has('cluster-signing') && !(own !== undefined && has(`cluster-signing-${own}`))
}

function flagOf(manager: ControllerManager | 'absent' | undefined, name: string): string | undefined {
  const words = typeof manager === 'object' ? manager.commandLine : undefined
  if (words === undefined) return undefined
  const at = words.findLastIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`))
  if (at === -1) return undefined
  const word = words[at] ?? ''
  return word.includes('=') ? word.slice(word.indexOf('=') + 1) : words[at + 1]
}
