import type { CommandFiles } from '../../cli/command-files.ts'
import { keyBesideReport, printedOnlyByName } from '../../cli/exposed-key.ts'
import type { Manifest } from '../../csr/create-report.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderYaml } from '../../output/yaml.ts'
import { writeKeyPair } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { writeKeyFile, writePublicFile } from '../../system/output-file.ts'
import { writePem } from '../../x509/pem.ts'
import type { RequestFlagValues, requestFormats } from './request-flags.ts'
import { inputsOf } from './request-settings.ts'

// The outputs of a request and its key. A private key is written only to a named file, or to standard output with `--key-out -`.
// docs/decisions/ explains why this also applies to cfssl's JSON, which always includes a key.

export interface OutputChoices extends RequestFlagValues {
  readonly output: (typeof requestFormats)[number]
  readonly force: boolean
}

/** The created request. */
export interface NewRequest {
  readonly der: Uint8Array
  readonly manifest: Manifest | undefined
  /** Set if this run created the key. */
  readonly keyPem: string | undefined
}

/** Returns true for a path; "-" or undefined means standard output. */
export function isFile(path: string | undefined): path is string {
  return path !== undefined && path !== '-'
}

/** Returns true for formats that describe the request and contain no key. */
export function isReport(format: OutputChoices['output']): boolean {
  return format === 'json' || format === 'yaml'
}

/** Throws KCERT_USAGE or KCERT_KEY_EXPOSED for outputs that exclude one another. */
export function checkOutputs({ output, out, key, 'key-out': keyOut }: OutputChoices): void {
  if (key === undefined && keyOut === undefined && !(output === 'cfssl' && isFile(out)))
    throw output === 'cfssl'
      ? printedOnlyByName("cfssl's JSON contains the private key", cfsslNext)
      : keyless()
  if (keyOut !== '-' || isFile(out)) return
  if (isReport(output)) throw keyBesideReport('--key-out -', output, '--key-out key.pem')
  if (output === 'manifest')
    throw new KcertError('KCERT_USAGE', 'the key and the manifest cannot both go to standard output', {
      why: 'one of them must be a file',
      next: '--out csr.yaml',
    })
}

/** Returns the files that the command reads and writes, for `checkFiles`. */
export function filesOf(choices: OutputChoices): CommandFiles {
  const { out, 'key-out': keyOut, force } = choices
  return {
    inputs: inputsOf(choices),
    outputs: [
      { by: '--key-out', path: keyOut, holds: 'key' },
      { by: '--out', path: out, holds: isKeyInside(choices) ? 'key' : 'public' },
    ],
    replace: force,
  }
}

/** Returns true for cfssl's JSON that includes the key: if a key is created without a separate file. */
export function isKeyInside({ output, key, 'key-out': keyOut }: OutputChoices): boolean {
  return output === 'cfssl' && key === undefined && !isFile(keyOut)
}

/** Writes the request and its key, both or neither if both are files; `answer` writes to standard output. */
export async function deliverRequest(
  created: NewRequest,
  choices: OutputChoices,
  answer: (text: string) => Promise<unknown>,
): Promise<void> {
  const { keyPem } = created
  const { out, 'key-out': keyOut, output, force } = choices
  const choice = { replace: force }
  const holdsKey = isKeyInside(choices)
  const document = documentOf(created, output, holdsKey)
  if (isFile(out) && isFile(keyOut) && keyPem !== undefined) {
    await withLock(out, () =>
      writeKeyPair({ path: out, content: document }, { path: keyOut, content: keyPem }, choice),
    )
    return
  }
  // The key comes first: a request without its key is useless.
  if (keyPem !== undefined && isFile(keyOut)) writeKeyFile(keyOut, keyPem, choice)
  if (keyPem !== undefined && keyOut === '-' && !holdsKey) await answer(keyPem)
  if (!isFile(out)) {
    if (!isReport(output)) await answer(document)
  } else if (holdsKey) writeKeyFile(out, document, choice)
  else writePublicFile(out, document, choice)
}

function documentOf(
  { der, manifest, keyPem }: NewRequest,
  format: OutputChoices['output'],
  holdsKey: boolean,
): string {
  const pem = writePem('CERTIFICATE REQUEST', der)
  if (manifest !== undefined) return renderYaml(manifest)
  return format === 'cfssl' ? `${JSON.stringify({ csr: pem, ...(holdsKey ? { key: keyPem } : {}) })}\n` : pem
}

const cfsslNext = '--out csr.json'

function keyless(): KcertError {
  return new KcertError('KCERT_USAGE', '--key-out or --key is required', {
    why: 'a CSR is signed with the private key of its owner; --key-out creates a key, --key uses an existing one',
    next: 'kcert csr create --help',
  })
}
