import { resolve } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { LabError } from './lab-error.ts'

interface Container {
  readonly command: string[]
  image: string
  imagePullPolicy?: string
  volumeMounts?: object[]
}

interface Manifest {
  readonly kind: string
  readonly spec: {
    readonly jobTemplate: {
      readonly spec: { readonly template: { readonly spec: { containers: Container[]; volumes?: object[] } } }
    }
  }
}

/**
 * Returns the manifests of a guide as one List. This checkout, mounted from the node, replaces the image with kcert. The rest of
 * the CronJob is as in the guide: its rights, its user, its read-only root.
 */
export function runFromCheckout(manifests: string): string {
  const items = parseAllDocuments(manifests).map((document) => document.toJS() as Manifest)
  for (const { kind, spec } of items) {
    if (kind !== 'CronJob') continue
    const pod = spec.jobTemplate.spec.template.spec
    const [container] = pod.containers
    if (container?.command[0] !== 'kcert') throw new LabError('the CronJob of the guide does not run kcert')
    container.image = 'lab.local/client-node:1'
    container.imagePullPolicy = 'Never'
    container.command.splice(0, 1, '/usr/bin/node', '/kcert/bin/run.js')
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name: 'kcert', mountPath: '/kcert', readOnly: true },
    ]
    pod.volumes = [
      ...(pod.volumes ?? []),
      { name: 'kcert', hostPath: { path: resolve('.'), type: 'Directory' } },
    ]
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}
