import { copyFileSync } from 'node:fs'
import { apply, servingAddons, servingSecret, waitForAddons } from './addons.ts'
import { issue, readPair } from './certificates.ts'
import { existing } from './cluster.ts'
import { patientKubectl } from './kubectl.ts'
import { hostPath } from './node.ts'
import { probeFiles } from './prober.ts'
import { paths, writeWhole } from './state.ts'

// The steps of other operators in a rotation, as a hook of the inventory. After phase 5, clients take the bundle and certificates
// of the new CA. After phase 9, the owners of webhook and metrics-server reissue their serving certificates, and clients may
// trust only the new CA.

const { spec } = existing()
const folder = `${spec.flavour === 'plain' ? '/etc/kubernetes/ssl' : '/etc/kubernetes/pki'}/kcert`
const newCa = readPair(hostPath('cp1', `${folder}/new/ca.crt`), hostPath('cp1', `${folder}/new/ca.key`))

if (process.env.KCERT_PHASE === '5') await takeUpNewCa()
if (process.env.KCERT_PHASE === '9') {
  writeWhole(probeFiles.trust('new'), newCa.certificate)
  // Users with a copy of an administrator's kubeconfig take the one of phase 7.
  const admin = spec.flavour === 'plain' ? '/etc/kubernetes/admin.kubeconfig' : '/etc/kubernetes/admin.conf'
  copyFileSync(hostPath('cp1', admin), paths.kubeconfig)
  if (spec.addons) await reissueAddons()
}

async function takeUpNewCa(): Promise<void> {
  const bundle = hostPath('cp1', `${folder}/ca-bundle.crt`)
  writeWhole(probeFiles.trust('both'), readPair(bundle, bundle).certificate)
  const request = {
    commonName: 'lab-prober',
    organizations: ['system:masters'],
    usages: ['clientAuth'],
  } as const
  const pair = await issue(newCa, request, spec.keys)
  writeWhole(probeFiles.key('new-cert'), pair.key, 0o600)
  writeWhole(probeFiles.certificate('new-cert'), pair.certificate)
}

async function reissueAddons(): Promise<void> {
  await apply(
    await Promise.all(servingAddons.map(([name, namespace]) => servingSecret(name, namespace, newCa, spec))),
  )
  for (const [name, namespace] of servingAddons)
    await patientKubectl(['-n', namespace, 'rollout', 'restart', `deployment/${name}`])
  for (const [name, namespace] of servingAddons)
    await patientKubectl(['-n', namespace, 'rollout', 'status', `deployment/${name}`, '--timeout=300s'])
  await waitForAddons()
}
