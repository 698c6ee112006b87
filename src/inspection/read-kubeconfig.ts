import {
  type Credential,
  isKubeconfig,
  type Kubeconfig,
  type KubeconfigUser,
  type Material,
  readKubeconfig,
} from '../kubeconfig/kubeconfig.ts'
import type { Node } from '../kubeconfig/node.ts'
import { readServiceAccountToken, type ServiceAccountToken } from '../x509/service-account-token.ts'
import type { Collection, Location } from './collection.ts'
import type { Group, KubeconfigEntry, Origin, Owner } from './entries.ts'
import { nameText, type Place } from './problems.ts'
import { mapReference } from './references.ts'
import type { ReadReferencedFile, Source, UnreadableSource } from './source.ts'

export { isKubeconfig }

/** The parts of an inspection that reading a kubeconfig needs. */
export interface KubeconfigContext {
  readonly collection: Collection
  /** Undefined when its files are on another system: in a Secret or ConfigMap they are those of a pod. */
  readonly readReferencedFile: ReadReferencedFile | undefined
  /** Reads bytes that should be certificates or a key. */
  readonly readMaterial: (
    location: Location,
    bytes: Uint8Array,
    wanted: 'certificate' | 'key',
  ) => Group | undefined
}

/**
 * Collects the content of a kubeconfig: CAs of clusters, certificates and keys of users, and users without a certificate, with
 * the reason.
 */
export function collectKubeconfig(
  context: KubeconfigContext,
  origin: Origin,
  prefix: string,
  node: Node,
): void {
  new KubeconfigCollector(context, origin, prefix, readKubeconfig(node)).collect()
}

class KubeconfigCollector {
  private readonly context: KubeconfigContext
  private readonly collection: Collection
  private readonly origin: Origin
  private readonly prefix: string
  private readonly kubeconfig: Kubeconfig
  private readonly entry: KubeconfigEntry

  constructor(context: KubeconfigContext, origin: Origin, prefix: string, kubeconfig: Kubeconfig) {
    this.context = context
    this.collection = context.collection
    this.origin = origin
    this.prefix = prefix
    this.kubeconfig = kubeconfig
    const { contexts, currentContext } = kubeconfig
    this.entry = { ...this.place(''), origin, currentContext, clusters: [], users: [], contexts }
  }

  collect(): void {
    const { kubeconfig } = this
    this.collection.kubeconfigs.push(this.entry)
    for (const { field, reason, next, isFatal } of kubeconfig.defects) {
      this.collection.addProblem(this.place(field), 'KUBECONFIG_FIELD_MALFORMED', {
        message: `${field}: ${reason}`,
        fix: isFatal
          ? 'correct the field: kubectl and every other client reject the whole file because of it'
          : (next ?? 'correct the field'),
        severity: isFatal ? 'critical' : 'warning',
      })
    }
    for (const { name, server, tlsServerName, skipsTlsVerify, certificateAuthority } of kubeconfig.clusters) {
      const at = `cluster ${nameText(name)}`
      if (skipsTlsVerify) this.addInsecure(at, certificateAuthority !== undefined)
      const owner: Owner = { kind: 'cluster', kubeconfig: this.entry, name }
      const group = certificateAuthority && this.material(at, owner, certificateAuthority)
      const reason = skipsTlsVerify
        ? 'the server is not verified'
        : 'no CA: clients use the CAs of the machine'
      if (certificateAuthority === undefined) this.addWithout(at, reason)
      this.entry.clusters.push({ name, server, tlsServerName, skipsTlsVerify, group })
    }
    for (const user of kubeconfig.users) this.collectUser(user)
  }

  private collectUser(user: KubeconfigUser): void {
    const at = `user ${nameText(user.name)}`
    const owner: Owner = { kind: 'user', kubeconfig: this.entry, name: user.name }
    const group = user.clientCertificate && this.material(at, owner, user.clientCertificate)
    const credentials = [
      ...(user.clientCertificate === undefined ? [] : ['client certificate']),
      ...user.credentials.map(({ kind }) => kind),
    ]
    this.entry.users.push({ name: user.name, group, credentials, secret: secretOf(user) })
    if (user.clientKey !== undefined) {
      const keys = this.material(at, owner, user.clientKey)
      // One group for both, so that they are compared.
      if (group !== undefined && keys !== undefined && keys !== group)
        group.keys = [...group.keys, ...keys.keys]
    }
    for (const credential of user.credentials) {
      if (credential.kind === 'tokenFile') this.readTokenFile(`${at}: tokenFile`, credential.file)
      if (credential.kind === 'token') this.addToken(`${at}: token`, credential.claims)
    }
    if (user.clientCertificate === undefined) {
      const reasons = user.credentials.map(credentialText)
      this.addWithout(at, reasons.length === 0 ? 'no credentials' : reasons.join('; '))
    }
  }

  private material(at: string, owner: Owner, material: Material): Group | undefined {
    const entry = this.place(`${at}: ${material.field}`).entry
    if (material.data !== undefined)
      return this.read({ origin: this.origin, entry, owner }, material.data, material.field)
    const written = material.file ?? ''
    const path = mapReference(written, this.origin)
    const { readReferencedFile } = this.context
    const pathEntry = `${entry} ${nameText(written)}`
    if (readReferencedFile === undefined || path === undefined) {
      const where =
        readReferencedFile === undefined ? 'of the pod that uses this' : 'whose folder is not known'
      this.addWithout(at, `${material.field} is a file ${where}: ${nameText(written)}`)
      return undefined
    }
    const outcome = readReferencedFile(path)
    if (!isSource(outcome)) {
      this.addUnreadable(pathEntry, path, outcome)
      return undefined
    }
    // The mode and the links are those of the referenced file. The report still shows the kubeconfig.
    const origin: Origin = { source: this.origin.source, file: outcome.file, isReferenced: true }
    this.collection.origins.push(origin)
    return this.read({ origin, entry: pathEntry, owner }, outcome.bytes, material.field)
  }

  private readTokenFile(field: string, written: string): void {
    const at = `${field} ${nameText(written)}`
    const path = mapReference(written, this.origin)
    const outcome = path === undefined ? undefined : this.context.readReferencedFile?.(path)
    if (path === undefined || outcome === undefined) return
    if (isSource(outcome)) this.addToken(at, readServiceAccountToken(Buffer.from(outcome.bytes).toString()))
    else this.addUnreadable(this.place(at).entry, path, outcome)
  }

  private addToken(at: string, claims: ServiceAccountToken | undefined): void {
    if (claims !== undefined) this.collection.tokens.push({ ...this.place(at), claims })
  }

  private read(location: Location, bytes: Uint8Array, field: string): Group | undefined {
    const before = this.collection.problems.length
    const isKeyField = field.startsWith('client-key')
    const group = this.context.readMaterial(location, bytes, isKeyField ? 'key' : 'certificate')
    const found = isKeyField ? group?.keys.length : group?.certificates.length
    if (!found && this.collection.problems.length === before) {
      const what = isKeyField ? 'private key' : 'certificate'
      const place = { source: this.origin.source, entry: location.entry }
      this.collection.addProblem(place, 'KUBECONFIG_FIELD_MALFORMED', {
        message: `${field} contains no ${what} in PEM`,
        fix: `replace it with a ${what} in PEM: clients fail with this one`,
      })
    }
    return group
  }

  private addWithout(at: string, reason: string): void {
    this.collection.withoutCertificate.push({ ...this.place(at), reason })
  }

  private addInsecure(at: string, hasCa: boolean): void {
    const message = 'insecure-skip-tls-verify is set: any server at that address gets the credentials'
    this.collection.addProblem(this.place(at), 'KUBECONFIG_INSECURE', {
      message: hasCa ? `${message}; clients reject a context that also has a CA` : message,
      fix: hasCa
        ? 'remove insecure-skip-tls-verify: the CA is in the file'
        : 'remove insecure-skip-tls-verify and put the cluster CA into certificate-authority-data',
    })
  }

  private addUnreadable(entry: string, path: string, { reason, detail }: UnreadableSource): void {
    const isForeign = isKubeletsFileElsewhere(path, this.origin)
    this.collection.addProblem({ source: this.origin.source, entry }, 'KUBECONFIG_FILE_UNREADABLE', {
      message: isForeign ? `${path} is a file of the node that was copied` : `${path}: ${detail}`,
      fix: isForeign
        ? 'to inspect it, also copy /var/lib/kubelet/pki of the node'
        : reason === 'permission'
          ? 'run kcert as a user who may read it, or with sudo'
          : 'correct the path in the kubeconfig, or restore the file',
      severity: isForeign ? 'info' : reason === 'permission' ? 'warning' : 'critical',
    })
  }

  private place(at: string): Place {
    const entry = this.prefix === '' || at === '' ? this.prefix + at : `${this.prefix} ${at}`
    return { source: this.origin.source, entry }
  }
}

function isSource(outcome: Source | UnreadableSource): outcome is Source {
  return 'bytes' in outcome
}

/** True in a copy of a node's files: the kubelet's folder is not expected next to the copy. */
function isKubeletsFileElsewhere(path: string, { file, root }: Origin): boolean {
  const isInPlace = file === undefined || file.path.startsWith('/etc/kubernetes/')
  return root !== undefined && !isInPlace && path.includes('/var/lib/kubelet/')
}

function secretOf({ credentials }: KubeconfigUser): 'token' | 'password' | undefined {
  if (credentials.some(({ kind }) => kind === 'token')) return 'token'
  return credentials.some(({ kind }) => kind === 'basic') ? 'password' : undefined
}

function credentialText(credential: Credential): string {
  const { kind } = credential
  if (kind === 'exec') {
    const program = credential.command === '' ? 'a plugin' : nameText(credential.command)
    return `runs ${program} (exec); kcert never runs it`
  }
  if (kind === 'auth-provider') return `uses the auth provider ${nameText(credential.name)}`
  if (kind === 'tokenFile') return `a bearer token in ${nameText(credential.file)}`
  return kind === 'token' ? 'a bearer token' : 'user name and password'
}
