import type { KeyObject } from 'node:crypto'
import { finishInterruptedPair, ledgerPath, withLedger } from '../../app/ca/authority-files.ts'
import { lifetimeFlags, lifetimeMs } from '../../app/ca/lifetime.ts'
import { certificateFacts } from '../../ca/facts.ts'
import type { AuthorityReport } from '../../ca/report.ts'
import { issueRoot, kubeadmCaTtlMs, type RootDescription } from '../../ca/root.ts'
import { rootOfCfssl } from '../../ca/root-of-cfssl.ts'
import { drawSerialNumber } from '../../ca/serial.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { keyBesideReport } from '../../cli/exposed-key.ts'
import {
  booleanFlag,
  numberFlag,
  repeatedFlag,
  reportFormatFlag,
  valueFlag,
  wordFlag,
} from '../../cli/flags.ts'
import { readPassword, readText } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderAuthority } from '../../output/ca.ts'
import { readCfsslRequest } from '../../pki/cfssl-request.ts'
import { writeKeyPair } from '../../system/key-pair-files.ts'
import { withLock } from '../../system/lock.ts'
import { writeKeyFile, writePublicFile } from '../../system/output-file.ts'
import type { Certificate } from '../../x509/certificate.ts'
import {
  generatePrivateKey,
  type KeyType,
  keyFormats,
  keyTypeNames,
  parseKeyType,
  writePrivateKey,
} from '../../x509/new-key.ts'
import { writePem } from '../../x509/pem.ts'

/** What is to be made, from flags or from cfssl's file. */
interface Settings {
  readonly root: RootDescription
  readonly keyType: KeyType
  readonly notices: readonly string[]
}

export default class CaInit extends KcertCommand {
  static override summary = 'Make a CA: a private key and a certificate that it signs itself.'

  static override description =
    `From flags, or from the JSON that cfssl gencert -initca reads (CN, names, key, ca.expiry, ca.pathlen). The certificate may
sign certificates and revocation lists. Key and certificate are written as a pair: whatever interrupts kcert, both are new or
both are as they were. The serial number goes into the CA's ledger, beside the certificate.`

  static override exitCodes = {
    [exitCodes.done]: 'the CA is made',
    [exitCodes.usage]: 'wrong usage, or an input that cannot be read',
    [exitCodes.no]: 'the key of --key, or its password, cannot be used',
    [exitCodes.unreachable]: 'a file could not be written, or another kcert works on it',
    [exitCodes.refused]: 'a file is there already',
  }

  static override examples = KcertCommand.examplesOf({
    'From flags': 'kcert ca init --cn "My Example Signer" --out ca.pem --key-out ca-key.pem',
    'From a file for cfssl, unchanged': 'kcert ca init --cfssl ca-csr.json --out ca.pem --key-out ca-key.pem',
    'RSA as kubeadm makes it, with an encrypted key':
      'kcert ca init --cn example-ca --key-type RSA-2048 --password-file pw.txt --out ca.crt --key-out ca.key',
    'With a key that is there, for two years, and no further CA below it':
      'kcert ca init --cn signer --key ca-key.pem --days 730 --path-length 0 --out ca.pem',
  })

  static override flags = {
    cfssl: valueFlag('FILE', 'cfssl\'s JSON; "-" for standard input'),
    cn: valueFlag('NAME', 'common name', { exclusive: ['cfssl'] }),
    org: repeatedFlag('NAME', 'organization', { exclusive: ['cfssl'] }),
    'key-type': valueFlag('TYPE', `${keyTypeNames.join(', ')}; without it ECDSA-P256`, {
      exclusive: ['cfssl', 'key'],
    }),
    key: valueFlag('FILE', 'take this private key instead of making one', { exclusive: ['key-out'] }),
    ...lifetimeFlags('ten years; with --cfssl its ca.expiry, or five years'),
    'path-length': numberFlag('N', 'how many CAs may stand below it; without it, any number', {
      min: 0,
      max: 255,
    }),
    out: valueFlag('FILE', 'where the certificate goes; "-" prints it', { required: true }),
    'key-out': valueFlag('FILE', 'where the private key goes; "-" prints it'),
    'key-format': wordFlag(keyFormats, 'how the key is written: see kcert key generate --help', {
      default: 'pkcs8',
    }),
    'password-file': valueFlag(
      'FILE',
      'encrypt the key with the first line of this file, or open the one of --key with it',
    ),
    ledger: valueFlag('FILE', 'the ledger, if not beside the certificate'),
    force: booleanFlag('replace files that are there'),
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(CaInit)
    const files = filesOf(flags)
    if (files.certificate !== undefined) await finishInterruptedPair(files.certificate)
    // Before anything is made: a ledger must not tell of a CA that was never written.
    checkFiles({
      inputs: flagFiles(flags, 'cfssl', 'key', 'password-file'),
      outputs: [
        { by: '--key-out', path: flags['key-out'], holds: 'key' },
        { by: '--out', path: flags.out, holds: 'public' },
        { by: '--ledger', path: files.ledger, holds: 'ledger' },
      ],
      replace: flags.force,
    })

    const settings = await this.settings(flags)
    const passwordFile = flags['password-file']
    const key = flags.key
      ? (await readKeyFile(flags.key, passwordFile, this.context)).keyObject
      : generatePrivateKey(settings.keyType)
    const keyPem = flags.key
      ? undefined
      : writePrivateKey(key, flags['key-format'], await readPassword(passwordFile, this.context))
    const certificate = await this.issue(settings.root, key, files.ledger)

    const pem = writePem('CERTIFICATE', certificate.der)
    await this.deliver(keyPem, pem, files, flags.force)
    const report: AuthorityReport = {
      apiVersion: 'kcert/v1',
      kind: 'CertificateAuthority',
      action: 'created',
      certificate: certificateFacts(certificate),
      caPin: `sha256:${certificate.publicKey.sha256}`,
      pem,
      files,
      notices: [...settings.notices],
    }
    const printed = flags['key-out'] === '-' ? (keyPem ?? '') : ''
    const text = () => (flags.out === '-' ? printed + pem : printed || renderAuthority(report))
    await this.show(flags.output, report, text, settings.notices)
    return exitCodes.done
  }

  private async settings(flags: InitFlags): Promise<Settings> {
    const asked = lifetimeMs(flags)
    const pathLength = flags['path-length']
    const limit = pathLength === undefined ? {} : { pathLength }
    if (flags.cfssl !== undefined) {
      const text = await readText(flags.cfssl, this.context)
      const request = await readCfsslRequest(text)
      const { root, notices } = rootOfCfssl(request, flags.cfssl)
      return {
        root: { ...root, ...limit, ttlMs: asked ?? root.ttlMs },
        keyType: request.keyType,
        notices,
      }
    }
    if (!flags.cn)
      throw new KcertError('KCERT_USAGE', 'the CA has no name', {
        why: 'certificates name the CA that signed them',
        next: '--cn NAME',
      })
    const subject = { commonName: flags.cn, organization: flags.org ?? [] }
    return {
      root: { subject, ...limit, ttlMs: asked ?? kubeadmCaTtlMs },
      keyType: parseKeyType(flags['key-type'] ?? 'ECDSA-P256'),
      notices: [],
    }
  }

  private async issue(
    root: RootDescription,
    key: KeyObject,
    ledger: string | undefined,
  ): Promise<Certificate> {
    const { clock, random } = this.context
    const now = clock()
    if (ledger === undefined)
      return issueRoot(
        root,
        key,
        now,
        drawSerialNumber(random, () => false),
      )
    return withLedger(ledger, (opened) => {
      const certificate = issueRoot(root, key, now, opened.draw(random))
      opened.record([certificate], now)
      return certificate
    })
  }

  private async deliver(
    keyPem: string | undefined,
    pem: string,
    files: Files,
    replace: boolean,
  ): Promise<void> {
    const { certificate, key } = files
    if (certificate !== undefined && key !== undefined && keyPem !== undefined) {
      const write = () =>
        writeKeyPair({ path: certificate, content: pem }, { path: key, content: keyPem }, { replace })
      await withLock(certificate, write)
      return
    }
    if (key !== undefined && keyPem !== undefined) writeKeyFile(key, keyPem, { replace })
    if (certificate !== undefined) writePublicFile(certificate, pem, { replace })
  }
}

type InitFlags = FlagsOf<typeof CaInit.flags>

/** Absent: standard output, or no such file. */
interface Files {
  readonly certificate?: string
  readonly key?: string
  readonly ledger?: string
}

function filesOf({ out, key, 'key-out': keyOut, ledger, output }: InitFlags): Files {
  if (key === undefined && keyOut === undefined) {
    throw new KcertError('KCERT_USAGE', 'no word about the private key', {
      next: '--key-out FILE',
    })
  }
  if (keyOut === '-' && output !== 'text') {
    throw keyBesideReport('--key-out -', output, 'leave -o out, or name a file: --key-out ca-key.pem')
  }
  const ledgerFile = ledger ?? (out === '-' ? undefined : ledgerPath(out))
  return {
    ...(out === '-' ? {} : { certificate: out }),
    ...(keyOut === undefined || keyOut === '-' ? {} : { key: keyOut }),
    ...(ledgerFile === undefined ? {} : { ledger: ledgerFile }),
  }
}
