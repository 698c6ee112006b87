import { existsSync } from 'node:fs'
import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'
import { type LocatedKey, readKeyFile } from '../../cli/key-file.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { FetchReport } from '../../csr/fetch-report.ts'
import { checkCertificate, notIssued } from '../../csr/fetched.ts'
import { stateOf } from '../../csr/life.ts'
import { manifestOf } from '../../csr/manifest.ts'
import { requestWord } from '../../csr/request-name.ts'
import { newRequestObject, signingRequestOfObject } from '../../csr/request-object.ts'
import { makeRequest, type RequestSpec } from '../../csr/request-spec.ts'
import type { RequestObject } from '../../csr/requests-api.ts'
import { kubeletClient } from '../../csr/signers.ts'
import type { SigningRequest } from '../../csr/signing-request.ts'
import { differencesOf, submitRequest } from '../../csr/submission.ts'
import { commandLine } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { removeQuietly } from '../../system/atomic-file.ts'
import { writeKeyPair } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { checkKeyPath, writeKeyFile, writePublicFile } from '../../system/output-file.ts'
import { readCertificates, writeCertificates } from '../../x509/certificate.ts'
import { generatePrivateKey, type KeyFormat, writePrivateKey } from '../../x509/new-key.ts'
import { readPem, writePem } from '../../x509/pem.ts'
import { finishInterruptedPair } from '../ca/ca-files.ts'
import { connectionNotices, fetchReport, fitCertificate, settledRequest } from './fetch.ts'
import { kubeconfigOf, writeIssued } from './issued-files.ts'

// `kcert csr request`: key, request, object, certificate, kubeconfig. Each is on the disk or on the cluster before the next step
// starts, so the same command continues after an interruption.

export interface Settings {
  readonly spec: RequestSpec
  readonly files: {
    readonly key: string
    /** False for --key: the file must exist. */
    readonly makesKey: boolean
    readonly request: string
    readonly certificate: string
    readonly kubeconfig: string | undefined
  }
  readonly keyFormat: KeyFormat | undefined
  readonly passwordFile: string | undefined
  readonly keyByPath: boolean
  readonly namespace: string | undefined
  readonly waitMs: number
  /** Start again, and replace existing files. */
  readonly force: boolean
}

interface Work {
  readonly cluster: Cluster
  readonly context: Context
  readonly settings: Settings
  /** Reports the progress. */
  readonly tell: (text: string) => void
}

/**
 * Does the remaining steps and returns the certificate. Throws as the steps do; existing files are kept. With --force, the new
 * files have other names until the certificate is issued. Then certificate and key are replaced together.
 */
export async function requestCertificate(work: Work): Promise<FetchReport> {
  const { files } = work.settings
  await finishInterruptedPair(files.certificate)
  const isRenewal = work.settings.force && files.makesKey && existsSync(files.key)
  if (!isRenewal) return obtain(work, files)
  const waiting = { ...files, key: `${files.key}.new`, request: `${files.request}.new` }
  // A request without its key is a leftover that an earlier run could not remove.
  if (!existsSync(waiting.key)) removeQuietly(waiting.request)
  const report = await obtain(
    { ...work, settings: { ...work.settings, files: waiting, force: false } },
    files,
  )
  // The key is removed last: with it, the same command can continue.
  for (const file of [waiting.request, waiting.key]) removeQuietly(file)
  return report
}

/**
 * Returns the object that would be sent, after the API server has accepted it in a dry run. Nothing is written. Without a key
 * file it is signed with a temporary key. Throws as submitRequest does.
 */
export async function plannedRequest(work: Work): Promise<RequestObject> {
  const { settings, context, cluster } = work
  const { spec, files, force, passwordFile } = settings
  const isNew = files.makesKey && (force || !existsSync(files.key))
  const request =
    !isNew && !force && existsSync(files.request)
      ? await requestOf(work, await keyOf(work))
      : draftOf(
          spec,
          makeRequest(
            spec,
            isNew
              ? generatePrivateKey(spec.keyType)
              : (await readKeyFile(files.key, passwordFile, context)).keyObject,
          ),
        )
  await submitRequest(cluster.requests, request, { dryRun: true, sameBy: 'key' })
  return newRequestObject(request)
}

/** Runs the steps with the existing files; results are written to `places`, which differ from them if a pair is replaced. */
async function obtain(work: Work, places: Settings['files']): Promise<FetchReport> {
  const { settings, context, cluster, tell } = work
  const isRenewal = settings.files !== places
  const key = await keyOf(work)
  const request = await requestOf(work, key)
  const present = isRenewal ? undefined : await presentCertificate(work, key, request)
  const found = present ?? (await issued(work, request))
  const fetched = fitCertificate(found, {
    key,
    ca: undefined,
    acceptsNames: false,
    now: context.clock(),
  })
  const { certificate, kubeconfig, key: keyFile, request: requestFile } = places
  const replace = settings.force || isRenewal
  if (isRenewal) {
    await replacePair(settings.files, places, writeCertificates(fetched.chain), context)
    tell(`certificate ${certificate} and private key ${keyFile} replaced`)
  } else if (present === undefined) {
    writeIssued(certificate, writeCertificates(fetched.chain), { replace, isSecret: false })
    tell(`certificate ${certificate} written`)
  } else tell(`certificate ${certificate} exists already`)
  const notices: string[] = [...settings.spec.notices]
  if (kubeconfig !== undefined) {
    const connection = cluster.connection()
    notices.push(...connectionNotices(connection))
    const { keyByPath, namespace } = settings
    const text = kubeconfigOf(
      {
        connection,
        chain: fetched.chain,
        key: { ...key, file: keyFile },
        keyByPath,
        user: undefined,
        namespace,
      },
      context,
    )
    writeIssued(kubeconfig, text, { replace, isSecret: true })
    tell(`kubeconfig ${kubeconfig} written`)
  }
  const written = {
    certificate,
    key: keyFile,
    request: requestFile,
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
  }
  return fetchReport(fetched, written, notices)
}

/** Replaces certificate and key together, and then the request. */
async function replacePair(
  waiting: Settings['files'],
  { certificate, key, request }: Settings['files'],
  certificatePem: string,
  context: Context,
): Promise<void> {
  const [keyPem, requestPem] = [
    await readInput(waiting.key, context),
    await readInput(waiting.request, context),
  ]
  await withLock(certificate, () =>
    writeKeyPair(
      { path: certificate, content: certificatePem },
      { path: key, content: Buffer.from(keyPem).toString('utf8') },
      { replace: true },
    ),
  )
  writePublicFile(request, Buffer.from(requestPem).toString('utf8'), { replace: true })
}

/** Returns the existing key, or a new one; it is on the disk before it is used. */
async function keyOf({ settings, context, tell }: Work): Promise<LocatedKey> {
  const { files, spec, keyFormat, passwordFile, force } = settings
  const { key: file, makesKey } = files
  if (!makesKey || (!force && existsSync(file))) {
    // A FIFO or a link is never the key of an earlier run.
    if (makesKey) checkKeyPath(file, { replace: true })
    const key = await readKeyFile(file, passwordFile, context)
    if (makesKey) tell(`private key ${file} exists already`)
    return key
  }
  const keyObject = generatePrivateKey(spec.keyType)
  writeKeyFile(file, writePrivateKey(keyObject, keyFormat ?? 'pkcs8'), { replace: force })
  tell(`private key ${file} written`)
  return readKeyFile(file, undefined, context)
}

/** Returns the existing request if it has the same content, or a new one. */
async function requestOf({ settings, context, tell }: Work, key: LocatedKey): Promise<SigningRequest> {
  const { files, spec, force } = settings
  const { request: file } = files
  const der = makeRequest(spec, key.keyObject)
  const made = draftOf(spec, der)
  if (!force && existsSync(file)) {
    const [block] = readPem(await readInput(file, context)).blocks
    if (block?.label !== 'CERTIFICATE REQUEST') throw otherRequest(file, 'it is not a CSR')
    const there = { ...made, request: Buffer.from(writePem('CERTIFICATE REQUEST', block.der)) }
    const differences = differencesOf(there, made, 'key')
    if (differences.length > 0) throw otherRequest(file, differences.join('; '))
    tell(`CSR ${file} exists already`)
    return there
  }
  writePublicFile(file, writePem('CERTIFICATE REQUEST', der), { replace: force })
  tell(`CSR ${file} written`)
  return made
}

/**
 * Returns the object of a request. Throws KCERT_CSR_SIGNER_REFUSED for one that would be refused or fail, before anything is
 * sent.
 */
function draftOf(spec: RequestSpec, der: Uint8Array): SigningRequest {
  return signingRequestOfObject(manifestOf(spec, der))
}

/** Returns a certificate that an earlier run fetched, as the object that it came from; undefined if there is no usable one. */
async function presentCertificate(
  { settings, context }: Work,
  key: LocatedKey,
  request: SigningRequest,
): Promise<SigningRequest | undefined> {
  const { certificate: file } = settings.files
  if (settings.force || !existsSync(file)) return undefined
  const bytes = await readInput(file, context)
  const object: SigningRequest = { ...request, certificate: bytes }
  const [leaf] = readCertificates(bytes)
  const broken =
    leaf === undefined
      ? ['it contains no certificate']
      : checkCertificate(leaf, object, {
          now: context.clock(),
          key: { publicKey: key.publicKey, place: key.file },
        })
          .filter(({ ok }) => !ok)
          .map(({ detail }) => detail)
  if (broken.length === 0) return object
  throw new KcertError('KCERT_FILE_EXISTS', `${file} exists already and does not match`, {
    why: `${broken.join('; ')}; --force starts again with a new key, CSR and certificate`,
  })
}

/** Sends the request unless it exists, and waits until it is decided and signed. */
async function issued({ cluster, settings, tell }: Work, request: SigningRequest): Promise<SigningRequest> {
  const { outcome, object } = await submitRequest(cluster.requests, request, { dryRun: false, sameBy: 'key' })
  const sent = signingRequestOfObject(object)
  const name = sent.name ?? ''
  tell(outcome === 'created' ? `submitted as ${name}` : `${name} exists already on the cluster`)
  const reported = new Set<string>()
  const onChange = (one: SigningRequest): void => {
    const text = progressText(one)
    if (text !== undefined && !reported.has(text)) tell(text)
    reported.add(text ?? '')
  }
  const wait = { durationMs: settings.waitMs, onChange }
  const settled = await settledRequest(cluster.requests, name, wait, sent.uid)
  if (stateOf(settled) !== 'issued') throw notIssued(settled)
  tell('issued')
  return settled
}

function progressText(object: SigningRequest): string | undefined {
  const state = stateOf(object)
  if (state === 'approved') return 'approved; waiting for the signer'
  if (state !== 'pending') return undefined
  const word = requestWord(object.name ?? '')
  return object.signerName === kubeletClient
    ? 'waiting for kube-controller-manager to approve it'
    : commandLine`waiting for an approver: kcert csr approve ${word}`
}

function otherRequest(file: string, why: string): KcertError {
  return new KcertError('KCERT_FILE_EXISTS', `${file} exists already, with other content`, {
    why: `${why}; --force starts again, or use other files with --key-out and --out`,
  })
}
