import { IssuanceLog } from '../../src/ca/issuance-log.ts'
import { readPolicies } from '../../src/csr/approval/policy-file.ts'
import { readDocuments } from '../../src/kubeconfig/documents.ts'
import { isKubeconfig, readKubeconfig } from '../../src/kubeconfig/kubeconfig.ts'
import {
  choicesIn,
  evidenceIn,
  intentsIn,
  journalLine,
  readJournal,
  rememberedIn,
  undoneIn,
  waiversIn,
} from '../../src/rotation/journal.ts'
import { manualRotation } from '../../src/rotation/phase-table.ts'
import { Certificate } from '../../src/x509/certificate.ts'
import { readPrivateKey, readPublicKey } from '../../src/x509/keys.ts'
import { looksLikePem, readPem, unseenByGo, writePem } from '../../src/x509/pem.ts'
import { readPkcs7 } from '../../src/x509/pkcs7.ts'
import { readPkcs12 } from '../../src/x509/pkcs12.ts'
import { CertificateRequest } from '../../src/x509/request.ts'
import * as seeds from './seeds.ts'

// All code that reads bytes from untrusted sources. A reader returns, or throws a KcertError.

export interface Reader {
  readonly name: string
  readonly read: (input: Uint8Array) => Promise<void> | undefined
  readonly corpus: readonly Uint8Array[]
  /** Typical content of such files, to insert anywhere. */
  readonly words: readonly (string | Uint8Array)[]
  /** Maximum size of inputs: longer ones only take more time. */
  readonly longest: number
}

const text = (input: Uint8Array): string =>
  Buffer.from(input.buffer, input.byteOffset, input.length).toString('utf8')

export const containers: readonly Reader[] = [
  { name: 'DER', read: readDer, corpus: seeds.ders, words: seeds.derWords, longest: 4096 },
  { name: 'PEM', read: readPemText, corpus: seeds.pems, words: seeds.pemWords, longest: 8192 },
  { name: 'PKCS#12', read: readStore, corpus: seeds.stores, words: seeds.derWords, longest: 4096 },
]

export const documents: readonly Reader[] = [
  { name: 'kubeconfig', read: readConfig, corpus: seeds.kubeconfigs, words: seeds.yamlWords, longest: 8192 },
  { name: 'policy', read: readPolicy, corpus: seeds.policies, words: seeds.yamlWords, longest: 4096 },
  { name: 'journal', read: readJournals, corpus: seeds.journals, words: seeds.jsonWords, longest: 8192 },
]

export const readers: readonly Reader[] = [...containers, ...documents]

/** Tries each kind of document until one is accepted. Then reads all of its properties, because many are decoded only then. */
function readDer(input: Uint8Array): undefined {
  takenByOne([
    () => touch(Certificate.parse(input)),
    () => touch(CertificateRequest.parse(input)),
    () => readPkcs7(input),
    () => readPublicKey(input),
    () => readPrivateKey(input),
  ])
}

/** Tries every read. Throws the last refusal when none accepts the input, and any other error at once. */
function takenByOne(reads: readonly (() => unknown)[]): void {
  let refusal: unknown
  let taken = 0
  for (const read of reads) {
    try {
      read()
      taken++
    } catch (error) {
      if ((error as { code?: string }).code?.startsWith('KCERT_') !== true) throw error
      refusal = error
    }
  }
  if (taken === 0) throw refusal
}

/** Reads every property, so that late decoding also runs. */
function touch(object: object): void {
  const prototype = Object.getPrototypeOf(object) as object
  for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(prototype)))
    if (get !== undefined) JSON.stringify(object[name as keyof typeof object], forJson)
}

function forJson(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value instanceof Uint8Array ? value.length : value
}

function readPemText(input: Uint8Array): undefined {
  looksLikePem(input)
  const { blocks, defects } = readPem(input)
  for (const block of blocks) {
    unseenByGo(input, block)
    const [again] = readPem(writePem(block.label, block.der)).blocks
    if (!Buffer.from(block.der).equals(again?.der ?? new Uint8Array(1)))
      throw new Error('written, it is another')
  }
  JSON.stringify(defects)
}

async function readStore(input: Uint8Array): Promise<void> {
  const { certificates, keys } = await readPkcs12(input, seeds.password)
  for (const { der } of keys) readPrivateKey(der)
  for (const { der } of certificates) Certificate.parse(der)
}

async function readConfig(input: Uint8Array): Promise<void> {
  const { documents, defects } = await readDocuments(text(input))
  for (const document of documents) if (isKubeconfig(document)) JSON.stringify(readKubeconfig(document))
  JSON.stringify(defects)
}

async function readPolicy(input: Uint8Array): Promise<void> {
  await readPolicies(text(input), 'policy.yaml')
}

/** Unchanged, and with corrected digests, because otherwise reading stops at the first changed line. */
function readJournals(input: Uint8Array): undefined {
  takenByOne([
    () => useJournal(text(input)),
    () => useJournal(chained(text(input))),
    () => new IssuanceLog({ name: 'issuance-log', read: () => input, append: () => {}, cut: () => {} }),
  ])
}

function useJournal(journal: string): void {
  const entries = readJournal(journal)
  evidenceIn(entries)
  intentsIn(entries, manualRotation)
  waiversIn(entries)
  rememberedIn(entries, manualRotation)
  choicesIn(entries, manualRotation)
  for (let phase = 1; phase <= 12; phase++) undoneIn(entries, phase)
}

function chained(journal: string): string {
  let last: string | undefined
  const lines = journal.split('\n').flatMap((line) => {
    try {
      const record = JSON.parse(line)
      if (typeof record !== 'object' || record === null) return []
      const { previous } = JSON.parse(journalLine(record, 0, last)) as { previous: string }
      last = JSON.stringify({ ...record, previous })
      return [last]
    } catch {
      return []
    }
  })
  return lines.map((line) => `${line}\n`).join('')
}
