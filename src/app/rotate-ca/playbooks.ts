import { etcdPlaybook } from '../../rotation/etcd/playbook.ts'
import type { Playbook } from '../../rotation/phase.ts'
import { playbook } from '../../rotation/playbook.ts'
import { isEtcd } from './settings.ts'

/** Returns the playbook for the value of --ca: etcd's CA has its own, all others have that of the Kubernetes documentation. */
export function playbookOf(ca: string | undefined): Playbook {
  return isEtcd(ca) ? etcdPlaybook : playbook
}
