import type { ApiObject } from '../cluster/malformed.ts'
import { metadataOf, type ObjectsApi } from '../cluster/objects.ts'
import type { Resource } from '../cluster/resource.ts'
import { commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { editKubeconfig } from '../kubeconfig/edit.ts'
import { usableKubeconfig } from '../kubeconfig/open.ts'
import type { ObjectChange, PatchObject } from '../rotation/action.ts'
import type { ObjectReference } from '../rotation/picture.ts'
import type { ControlPlanes } from '../site/control-planes.ts'
import { contentVersion } from '../site/object-content.ts'
import { writeCertificates } from '../x509/certificate.ts'
import type { Authorities } from './authorities.ts'
import type { Copies } from './copies.ts'
import { withExtraArgs } from './extra-args.ts'
import { restored } from './object-restoring.ts'

const kinds: Readonly<Record<string, Pick<Resource, 'group' | 'version' | 'resource'>>> = {
  ConfigMap: { group: '', version: 'v1', resource: 'configmaps' },
  Secret: { group: '', version: 'v1', resource: 'secrets' },
  APIService: { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' },
  ValidatingWebhookConfiguration: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    resource: 'validatingwebhookconfigurations',
  },
  MutatingWebhookConfiguration: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    resource: 'mutatingwebhookconfigurations',
  },
  CustomResourceDefinition: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    resource: 'customresourcedefinitions',
  },
}

type Fields = Record<string, unknown>

/** Enough for every writer of cluster-info; who writes more often than that does nothing else. */
const mostTries = 5

/** Changes objects of the cluster at the version that was planned for; what they were is copied first. */
export class ObjectPatching {
  private readonly objects: ObjectsApi
  private readonly planes: ControlPlanes
  private readonly copies: Copies
  private readonly authorities: Authorities
  /** Versions that this run wrote, by the version that it replaced: two fields of one object are two acts of one plan. */
  private readonly successors = new Map<string, string>()

  constructor(objects: ObjectsApi, planes: ControlPlanes, copies: Copies, authorities: Authorities) {
    this.objects = objects
    this.planes = planes
    this.copies = copies
    this.authorities = authorities
  }

  /** A controller that notes something in the object at the same moment is given way to; somebody who changes it is drift. */
  async patch(action: PatchObject): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.patchOnce(action)
      } catch (error) {
        const isConflict = error instanceof KcertError && error.code === 'KCERT_API_CONFLICT'
        if (!isConflict) throw error
        if (tries === mostTries) throw drift(action, error)
      }
    }
  }

  private async patchOnce(action: PatchObject): Promise<void> {
    const { object, change, phase } = action
    const resource = resourceOf(object)
    const now = await this.objects.get(resource)
    if (now === undefined) {
      if (change.kind === 'delete') return
      if (change.kind !== 'copy') throw drift(action)
    } else if (!this.isMeant(action, now)) throw drift(action)
    const [first] = await this.planes.names()
    await this.copies.keepObject(first!, object, now && restorable(now), phase)
    if (change.kind === 'delete' || (change.kind === 'copy' && change.digest === undefined)) {
      const { uid, resourceVersion } = metadataOf(now!)
      const isGone = await this.objects.delete(resource, {
        uid: String(uid),
        resourceVersion: String(resourceVersion),
      })
      if (!isGone && (await this.objects.get(resource)) !== undefined) throw drift(action)
      return
    }
    const wanted = await this.changed(first!, object, now, change)
    const written =
      now === undefined
        ? await this.objects.create({ ...resource, name: undefined as never }, wanted)
        : await this.objects.replace(resource, wanted)
    this.successors.set(`${keyOf(object)} ${action.version}`, versionOf(written))
  }

  private isMeant({ object, version }: PatchObject, now: ApiObject): boolean {
    const current = versionOf(now)
    return current === version || current === this.successors.get(`${keyOf(object)} ${version}`)
  }

  private async changed(
    first: string,
    object: ObjectReference,
    now: ApiObject | undefined,
    change: Exclude<ObjectChange, { kind: 'delete' }>,
  ): Promise<ApiObject> {
    switch (change.kind) {
      case 'ca-bundle': {
        const pem = await this.pem(change.trust)
        return withField(now!, change.field, Buffer.from(pem).toString('base64'))
      }
      case 'cluster-info':
        return editData(now!, 'kubeconfig', async (text) => withCaData(text, await this.pem(change.trust)))
      case 'extra-args':
        return editData(now!, 'ClusterConfiguration', (text) =>
          withExtraArgs(text, change.component, change.flags),
        )
      case 'copy': {
        const text = Buffer.from(await this.copies.bytes(first, change.digest!)).toString('utf8')
        return restored(object, now, JSON.parse(text) as ApiObject)
      }
    }
  }

  private async pem(digests: readonly string[]): Promise<string> {
    const certificates = []
    for (const digest of digests) certificates.push(await this.authorities.certificate(digest))
    return writeCertificates(certificates)
  }
}

function resourceOf({ kind, namespace, name }: ObjectReference): Resource {
  const known = kinds[kind]
  if (known === undefined) throw new TypeError(`objects of kind ${kind} are not changed by a rotation`)
  return { ...known, name, ...(namespace === undefined ? {} : { namespace }) }
}

function versionOf(object: ApiObject): string {
  return contentVersion({ ...object, metadata: metadataOf(object) })
}

function keyOf({ kind, namespace = '', name }: ObjectReference): string {
  return `${kind} ${namespace}/${name}`
}

/** What an operator would call the object: without what the API server keeps for itself. */
function restorable(object: ApiObject): ApiObject {
  const { status: _, ...rest } = object
  const { name, namespace, labels, annotations } = metadataOf(object)
  return { ...rest, metadata: { name, namespace, labels, annotations } }
}

/** Sets a field that is named as in a picture: "spec.caBundle", "webhooks[0].clientConfig.caBundle". */
export function withField(object: ApiObject, field: string, value: string): ApiObject {
  const path = field
    .replace(/\[(\w+)\]/g, '.$1')
    .split('.')
    .filter((part) => part !== '')
  const copy = structuredClone(object) as Fields
  let at = copy
  for (const part of path.slice(0, -1)) {
    const next = at[part]
    if (typeof next !== 'object' || next === null) throw new TypeError(`the object has no field ${field}`)
    at = next as Fields
  }
  at[path.at(-1)!] = value
  return copy
}

async function editData(
  object: ApiObject,
  key: string,
  edit: (text: string) => Promise<string>,
): Promise<ApiObject> {
  const data = (object.data ?? {}) as Readonly<Record<string, string>>
  return { ...object, data: { ...data, [key]: await edit(data[key] ?? '') } }
}

async function withCaData(text: string, pem: string): Promise<string> {
  const { kubeconfig } = await usableKubeconfig(text, 'ConfigMap kube-public/cluster-info')
  return editKubeconfig(text, {
    clusters: kubeconfig.clusters.map(({ name }) => ({
      name,
      certificateAuthority: { data: Buffer.from(pem) },
    })),
  })
}

function drift({ object, phase }: PatchObject, cause?: unknown): KcertError {
  return new KcertError(
    'KCERT_ROTATION_DRIFT',
    `${keyOf(object)} is not what it was when the plan was made`,
    {
      why: 'somebody else changed it meanwhile',
      next: commandLine`run the same command again: kcert rotate-ca --phase ${phase}`,
      cause,
    },
  )
}
