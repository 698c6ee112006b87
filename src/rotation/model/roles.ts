import type { ComponentName } from '../snapshot.ts'

// The flags with the certificates that a process presents, and the flags with the CAs with which it verifies.

/** The purpose of a flag's file for the process that reads it. */
export interface Role {
  readonly flag: string
  readonly part: 'trust' | 'chain' | 'caData' | 'client' | 'signing' | 'root'
  readonly reload: 'hot' | 'start'
  readonly presentsIn?: readonly RelationName[]
  readonly verifiesIn?: readonly RelationName[]
}

export type RelationName = 'servers' | 'clients' | 'atJoiner' | 'kubeletServing' | 'frontProxy' | 'users'

const kubeconfigRoles: readonly Role[] = [
  { flag: 'kubeconfig', part: 'caData', reload: 'start', verifiesIn: ['servers'] },
  { flag: 'kubeconfig', part: 'client', reload: 'start', presentsIn: ['clients'] },
]

/** The signing pair and --root-ca-file have their own cells, because other processes present the resulting certificates. */
export const rolesOf: Record<ComponentName, readonly Role[]> = {
  'kube-apiserver': [
    { flag: 'tls-cert-file', part: 'chain', reload: 'hot', presentsIn: ['servers'] },
    { flag: 'client-ca-file', part: 'trust', reload: 'hot', verifiesIn: ['clients'] },
    { flag: 'requestheader-client-ca-file', part: 'trust', reload: 'hot' },
    { flag: 'kubelet-client-certificate', part: 'chain', reload: 'hot', presentsIn: ['atJoiner'] },
    { flag: 'proxy-client-cert-file', part: 'chain', reload: 'hot', presentsIn: ['frontProxy'] },
    {
      flag: 'kubelet-certificate-authority',
      part: 'trust',
      reload: 'start',
      verifiesIn: ['kubeletServing'],
    },
  ],
  'kube-controller-manager': [
    ...kubeconfigRoles,
    { flag: 'client-ca-file', part: 'trust', reload: 'hot', verifiesIn: ['users'] },
    { flag: 'requestheader-client-ca-file', part: 'trust', reload: 'hot', verifiesIn: ['frontProxy'] },
    { flag: 'root-ca-file', part: 'root', reload: 'start' },
    { flag: 'cluster-signing-cert-file', part: 'signing', reload: 'hot' },
  ],
  'kube-scheduler': [
    ...kubeconfigRoles,
    { flag: 'client-ca-file', part: 'trust', reload: 'hot', verifiesIn: ['users'] },
  ],
  'cloud-controller-manager': kubeconfigRoles,
  'kube-proxy': kubeconfigRoles,
}

export const kubeletRoles: readonly Role[] = [
  { flag: 'clientCAFile', part: 'trust', reload: 'hot', verifiesIn: ['users'] },
  { flag: 'kubeconfig', part: 'caData', reload: 'start', verifiesIn: ['servers'] },
  { flag: 'client', part: 'client', reload: 'start', presentsIn: ['clients'] },
  { flag: 'serving', part: 'chain', reload: 'start', presentsIn: ['kubeletServing'] },
]

/** Returns the name for the operator. */
export function labelOf(id: string, { flag, part, presentsIn }: Role): string {
  if (part === 'caData') return `${id}, CA data of its kubeconfig`
  if (part === 'client') return `${id}, client certificate`
  if (id.endsWith('/kubelet') && presentsIn !== undefined) return `${id}, serving certificate`
  return `${id}, ${id.endsWith('/kubelet') ? '' : '--'}${flag}`
}
