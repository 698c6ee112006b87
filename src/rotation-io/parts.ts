import type { PhaseTable } from '../rotation/phase-table.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import type { Site } from '../site/site.ts'
import type { Copies } from './copies.ts'
import type { KubeletRequests } from './kubelet-requests.ts'
import type { OwnIdentity } from './own-identity.ts'
import type { RotationCas } from './rotation-cas.ts'
import type { RotationKeys } from './rotation-keys.ts'

/** The objects that the actions of one run share. */
export interface Parts {
  readonly site: Site
  readonly planes: ControlPlanes
  readonly copies: Copies
  readonly cas: RotationCas
  readonly keys: RotationKeys
  /** The playbook of the rotation. */
  readonly table: PhaseTable
  readonly identity: OwnIdentity
  readonly requests: KubeletRequests
}
