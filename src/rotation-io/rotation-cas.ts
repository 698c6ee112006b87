import type { KeyObject } from 'node:crypto'
import { isKeyOf, type SigningPair } from '../ca/certificate-authority.ts'
import { drawSerialNumber } from '../ca/serial.ts'
import { type Issuing, issueBridge, issueSuccessor, withCommonName } from '../ca/successor.ts'
import { onKcertError, orUndefined } from '../errors/caught.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { flagsOf } from '../pki/component-flags.ts'
import type { FileContent } from '../pki/node-access.ts'
import {
  caFileOf,
  copyPath,
  kcertFolderFor,
  kcertFolderIn,
  keyPathFor,
  materialPaths,
} from '../rotation/material.ts'
import { manualRotation, type PhaseTable, rowNumbered } from '../rotation/phase-table.ts'
import type { Generation } from '../rotation/signing.ts'
import { type CaName, everyCaName, plannedDigest } from '../rotation/target.ts'
import { nextName } from '../rotation/target-reading.ts'
import type { ApiServer, ControlPlanes } from '../site/control-planes.ts'
import type { Site } from '../site/site.ts'
import type { RandomBytes } from '../system/random.ts'
import { type Certificate, readCertificates, writeCertificates } from '../x509/certificate.ts'
import { readPrivateKeyFile } from '../x509/keys.ts'
import { type KubeadmKeyType, replacementKey } from '../x509/new-key.ts'
import { readIndex } from './copies.ts'

/** A CA that the operator supplies instead of a new one. */
export type GivenPairs = Readonly<Partial<Record<CaName, SigningPair>>>

/**
 * The CAs of a rotation with their keys. A key exists only in the memory of this process and in files on control-plane nodes. The
 * new CA is created once: later runs, or a run after a crash, find it where the first run wrote it.
 */
export class RotationCas {
  private readonly site: Site
  private readonly planes: ControlPlanes
  private readonly given: GivenPairs
  private readonly random: RandomBytes
  private readonly table: PhaseTable
  private readonly known = new Map<string, Promise<SigningPair>>()
  /** New CAs that exist only in memory and have the type of the old CA's key, for the trust of a probe before phase 1. */
  private readonly unwritten = new Set<CaName>()
  private readonly madeBridges = new Map<CaName, Promise<Certificate>>()

  constructor(
    site: Site,
    planes: ControlPlanes,
    random: RandomBytes,
    given: GivenPairs = {},
    table = manualRotation,
  ) {
    this.site = site
    this.planes = planes
    this.random = random
    this.given = given
    this.table = table
  }

  /**
   * Returns a CA with its key. `keyType`: for a new CA that does not exist yet; without it, that of the old CA. Throws
   * KCERT_ROTATION_REFUSED when no node has its key.
   */
  pair(ca: CaName, generation: Generation, keyType?: KubeadmKeyType): Promise<SigningPair> {
    const name = `${ca} ${generation}`
    if (keyType !== undefined && this.unwritten.delete(ca)) {
      this.known.delete(name)
      this.madeBridges.delete(ca)
    }
    const asked =
      this.known.get(name) ?? (generation === 'old' ? this.findOld(ca) : this.findOrMakeNew(ca, keyType))
    this.known.set(name, asked)
    asked.then(
      ({ certificate }) => this.site.certificates.add(certificate),
      () => this.known.delete(name),
    )
    return asked
  }

  /** Returns the new CA's name and key, certified by the old CA: the certificate on a node, or a new one. */
  bridge(ca: CaName): Promise<Certificate> {
    const asked = this.madeBridges.get(ca) ?? this.findOrMakeBridge(ca)
    this.madeBridges.set(ca, asked)
    asked.then(
      (certificate) => this.site.certificates.add(certificate),
      () => this.madeBridges.delete(ca),
    )
    return asked
  }

  /** Returns the certificate with a digest, including the placeholder digests of a plan. */
  async certificate(digest: string): Promise<Certificate> {
    for (const ca of everyCaName) {
      if (digest === plannedDigest(ca, 'new')) return (await this.pair(ca, 'new')).certificate
      if (digest === plannedDigest(ca, 'bridge')) return this.bridge(ca)
    }
    const known = this.site.certificates.get(digest) ?? (await this.lookup(digest))
    if (known !== undefined) return known
    throw new KcertError('KCERT_ROTATION_DRIFT', `certificate ${digest} was not found on any node`, {
      why: 'it existed when kcert planned; the file or object that contained it has changed since',
      next: 'kcert rotate-ca',
    })
  }

  issuing(): Issuing {
    const serialNumber = drawSerialNumber(this.random, () => false)
    return { now: this.site.clock(), serialNumber }
  }

  private async findOld(ca: CaName): Promise<SigningPair> {
    for (const { node, paths, own } of await this.everyPlace(ca)) {
      const [laidOut, laidOutKey, present, presentKey] = await this.read(node, [
        paths.oldCertificate,
        paths.oldKey,
        ...own,
      ])
      const certificates = [...certificatesIn(laidOut), ...certificatesIn(present)]
      // Until phase 1 has decided, the first one is the old CA: the new one follows it, and is never alone before phase 12.
      const keys = [keyIn(laidOutKey), keyIn(presentKey)]
      const pair = pairOf(certificatesIn(laidOut).slice(0, 1), keys) ?? pairOf(certificates, keys)
      if (pair !== undefined && !(await this.isNew(ca, pair))) return pair
    }
    const kept = await this.findCopy(ca)
    if (kept !== undefined) return kept
    throw noKey(ca, 'old')
  }

  /** At the end of a rotation, the old pair exists only in the copies. */
  private async findCopy(ca: CaName): Promise<SigningPair | undefined> {
    for (const { node, own } of await this.everyPlace(ca)) {
      const index = await readIndex(this.planes.node(node), this.table.copiesIndex)
      const copies = index.copies.filter(
        ({ phase, digest }) => rowNumbered(this.table, phase)?.begins && digest !== undefined,
      )
      const pathOf = (path: string | undefined): string | undefined => {
        const copy = copies.find(({ of }) => 'path' in of && of.path === path)
        return copy?.digest === undefined ? undefined : copyPath(copy.digest)
      }
      const [certificate, key] = own.map(pathOf)
      if (certificate === undefined || key === undefined) continue
      const [certificateFile, keyFile] = await this.read(node, [certificate, key])
      const pair = pairOf(certificatesIn(certificateFile), [keyIn(keyFile)])
      if (pair !== undefined) return pair
    }
    return undefined
  }

  /** After phase 12, the pair next to the API server's file is the new one. */
  private async isNew(ca: CaName, { certificate }: SigningPair): Promise<boolean> {
    for (const { node, paths } of await this.places(ca)) {
      const [file] = await this.read(node, [paths.newCertificate])
      if (certificatesIn(file).some((one) => one.fingerprintSha256 === certificate.fingerprintSha256))
        return true
    }
    return false
  }

  private async findOrMakeNew(ca: CaName, keyType?: KubeadmKeyType): Promise<SigningPair> {
    const places = await this.places(ca)
    let orphan: KeyObject | undefined
    for (const { node, paths } of places) {
      const [certificate, key] = await this.read(node, [paths.newCertificate, paths.newKey])
      const found = keyIn(key)
      const pair = pairOf(certificatesIn(certificate), [found])
      if (pair !== undefined) return pair
      orphan ??= found
    }
    const given = this.given[ca]
    if (given !== undefined) return given
    const { certificate: old } = await this.pair(ca, 'old')
    // A run that was killed between the two writes left a key without its certificate. This key is used for the new certificate.
    const key = orphan ?? replacementKey(old.publicKey, keyType)
    if (orphan === undefined && keyType === undefined) this.unwritten.add(ca)
    const rename = (commonName: string): string => nextName(`CN=${commonName}`, ca).slice('CN='.length)
    const certificate = issueSuccessor(old, withCommonName(old.subject, rename), key, this.issuing())
    return { certificate, key }
  }

  private async findOrMakeBridge(ca: CaName): Promise<Certificate> {
    const newCa = (await this.pair(ca, 'new')).certificate
    for (const { node, paths } of await this.places(ca)) {
      const [file] = await this.read(node, [paths.bridge])
      const [bridge] = certificatesIn(file)
      if (bridge?.publicKey.sha256 === newCa.publicKey.sha256) return bridge
    }
    return issueBridge(newCa, await this.pair(ca, 'old'), this.issuing())
  }

  private async lookup(digest: string): Promise<Certificate | undefined> {
    for (const ca of everyCaName) {
      for (const { node, paths, own } of await this.places(ca)) {
        const files = [paths.oldCertificate, paths.newCertificate, paths.bridge, own[0]]
        for (const file of await this.read(node, files)) {
          this.site.certificates.addAll(certificatesIn(file))
        }
      }
    }
    return this.site.certificates.get(digest)
  }

  private async everyPlace(ca: CaName): Promise<readonly Place[]> {
    return [...(await this.places(ca)), ...(await this.machines(ca))]
  }

  /**
   * Returns the paths of a CA's files on each control-plane node: kcert's own, and the certificate and key in the API server's
   * flags.
   */
  private async places(ca: CaName): Promise<readonly Place[]> {
    return (await this.planes.apiServers()).flatMap((api: ApiServer) => {
      const path = caFileOf(api, ca)
      return path === undefined
        ? []
        : [placeOf(api.node, path, materialPaths(kcertFolderIn(api.flags, ca), ca))]
    })
  }

  /** Returns the same for the members on machines of external etcd that run. kcert has no files of its own there. */
  private async machines(ca: CaName): Promise<readonly Place[]> {
    const machines = ca === 'etcd' ? (this.site.inventory.etcd ?? []) : []
    const found = await Promise.all(
      machines.map(async ({ name }) => {
        const running = await this.planes.runningEtcd(name).catch(onKcertError(() => undefined))
        const path = running && flagsOf(running.argv)['trusted-ca-file']
        return path === undefined ? [] : [placeOf(name, path, materialPaths(kcertFolderFor(path), ca))]
      }),
    )
    return found.flat()
  }

  private async read(node: string, paths: readonly string[]): Promise<readonly FileContent[]> {
    return this.planes.node(node).readFiles(paths)
  }
}

interface Place {
  readonly node: string
  readonly paths: ReturnType<typeof materialPaths>
  readonly own: readonly [certificate: string, key: string]
}

function placeOf(node: string, path: string, paths: Place['paths']): Place {
  return { node, paths, own: [path, keyPathFor(path)] }
}

/** Returns the certificates with these digests in PEM. */
export async function bundleOf(
  cas: Pick<RotationCas, 'certificate'>,
  digests: readonly string[],
): Promise<string> {
  const certificates = []
  for (const digest of digests) certificates.push(await cas.certificate(digest))
  return writeCertificates(certificates)
}

function certificatesIn(file: FileContent | undefined): Certificate[] {
  return (file?.found === 'file' && orUndefined(() => readCertificates(file.content))) || []
}

function keyIn(file: FileContent | undefined): KeyObject | undefined {
  return file?.found === 'file' ? orUndefined(() => readPrivateKeyFile(file.content).keyObject) : undefined
}

/** Returns the first certificate that matches one of the keys. */
function pairOf(
  certificates: readonly Certificate[],
  keys: readonly (KeyObject | undefined)[],
): SigningPair | undefined {
  for (const certificate of certificates) {
    const key = keys.find((one) => one !== undefined && isKeyOf(one, certificate))
    if (key !== undefined) return { certificate, key }
  }
  return undefined
}

function noKey(ca: CaName, generation: Generation): KcertError {
  const places = ca === 'etcd' ? 'control-plane node or etcd machine' : 'control-plane node'
  return new KcertError('KCERT_ROTATION_REFUSED', `no ${places} has the key of the ${generation} ${ca} CA`, {
    why: `the rotation must sign certificates with it: copy it beside the CA certificate on one ${places} (mode 0600)`,
    next: 'kcert rotate-ca plan',
  })
}
