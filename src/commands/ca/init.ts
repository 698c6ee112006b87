import type { KeyObject } from 'node:crypto'
import { defaultIssuanceLogPath, finishInterruptedPair, withIssuanceLog } from '../../app/ca/ca-files.ts'
import { lifetimeFlags, lifetimeMs } from '../../app/ca/lifetime.ts'
import { certificateFacts } from '../../ca/facts.ts'
import type { CaReport } from '../../ca/report.ts'
import { issueRoot, kubeadmCaTtlMs, type RootDescription } from '../../ca/root.ts'
import { rootOfCfssl } from '../../ca/root-of-cfssl.ts'
import { drawSerialNumber } from '../../ca/serial.ts'
import { type FlagsOf, KcertCommand } from '../../cli/base-command.ts'
import { checkFiles, flagFiles } from '../../cli/command-files.ts'
import { keyBesideReport } from '../../cli/exposed-key.ts'
import * as Flag from '../../cli/flags.ts'
import { readPassword, readText } from '../../cli/input.ts'
import { readKeyFile } from '../../cli/key-file.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { renderCa } from '../../output/ca.ts'
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

/** The CA to create, from flags or from cfssl's file. */
interface Settings {
  readonly root: RootDescription
  readonly keyType: KeyType
  readonly notices: readonly string[]
}

export default class CaInit extends KcertCommand {
  static override summary = 'Create a CA: a private key and a self-signed certificate.'

  static override description =
    `Takes the CA's name and key type from flags, or from the JSON that cfssl gencert -initca reads (CN, names, key, ca.expiry,
ca.pathlen). The certificate may sign certificates and CRLs. Key and certificate are written as a pair: if kcert is interrupted,
both are new or both are unchanged. The serial number is recorded in the CA's issuance log, next to the certificate.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the CA was created',
    usage: 'wrong usage, or an input cannot be read',
    no: 'the key of --key or its password cannot be used',
    unreachable: 'a file cannot be written, or is locked by another kcert process',
    refused: 'a file already exists',
  })

  static override examples = KcertCommand.examplesOf({
    'Create a CA from flags': 'kcert ca init --cn "My Example Signer" --out ca.pem --key-out ca-key.pem',
    'Create it from an unchanged cfssl file':
      'kcert ca init --cfssl ca-csr.json --out ca.pem --key-out ca-key.pem',
    'Create an RSA CA as kubeadm does, but with an encrypted key':
      'kcert ca init --cn example-ca --key-type RSA-2048 --password-file pw.txt --out ca.crt --key-out ca.key',
    'Create it with an existing key, valid for two years, without intermediate CAs':
      'kcert ca init --cn signer --key ca-key.pem --days 730 --path-length 0 --out ca.pem',
  })

  static override flags = {
    cfssl: Flag.value('FILE', 'cfssl JSON file; "-" for standard input'),
    cn: Flag.value('NAME', 'common name; required without --cfssl', { exclusive: ['cfssl'] }),
    org: Flag.repeated('NAME', 'organization', { exclusive: ['cfssl'] }),
    'key-type': Flag.value('TYPE', `type of the key: ${keyTypeNames.join(', ')} (default ECDSA-P256)`, {
      exclusive: ['cfssl', 'key'],
    }),
    key: Flag.value('FILE', 'existing private key, instead of --key-out', { exclusive: ['key-out'] }),
    ...lifetimeFlags('10 years; with --cfssl its ca.expiry, else 5 years'),
    'path-length': Flag.number('N', 'maximum number of intermediate CAs below this CA (default unlimited)', {
      min: 0,
      max: 255,
    }),
    out: Flag.value('FILE', 'file for the certificate; "-" for standard output', { required: true }),
    'key-out': Flag.value('FILE', 'file for the private key; "-" for standard output'),
    'key-format': Flag.word(keyFormats, 'key format: see kcert key generate --help', {
      default: 'pkcs8',
    }),
    'password-file': Flag.value(
      'FILE',
      'file with the password on its first line: encrypts the new key, or decrypts --key',
    ),
    'issuance-log': Flag.value('FILE', 'issuance log (default next to the certificate)', {
      aliases: ['ledger'],
    }),
    force: Flag.boolean('overwrite existing files'),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(CaInit)
    const files = filesOf(flags)
    if (files.certificate !== undefined) await finishInterruptedPair(files.certificate)
    // Before anything is created: the issuance log must not contain a CA that was never written.
    checkFiles({
      inputs: flagFiles(flags, 'cfssl', 'key', 'password-file'),
      outputs: [
        { by: '--key-out', path: flags['key-out'], holds: 'key' },
        { by: '--out', path: flags.out, holds: 'public' },
        { by: '--issuance-log', path: files.issuanceLog, holds: 'log' },
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
    const certificate = await this.issue(settings.root, key, files.issuanceLog)

    const pem = writePem('CERTIFICATE', certificate.der)
    await this.deliver(keyPem, pem, files, flags.force)
    const report: CaReport = {
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
    const text = () => (flags.out === '-' ? printed + pem : printed || renderCa(report))
    return this.show(flags.output, report, text, { notices: settings.notices })
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
      throw new KcertError('KCERT_USAGE', 'no CA name given', {
        why: 'the issuer of every certificate that the CA signs is this name',
        next: '--cn example-ca',
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
    issuanceLog: string | undefined,
  ): Promise<Certificate> {
    const { clock, random } = this.context
    const now = clock()
    if (issuanceLog === undefined)
      return issueRoot(
        root,
        key,
        now,
        drawSerialNumber(random, () => false),
      )
    return withIssuanceLog(issuanceLog, (opened) => {
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
  readonly issuanceLog?: string
}

function filesOf({ out, key, 'key-out': keyOut, 'issuance-log': issuanceLog, output }: InitFlags): Files {
  if (key === undefined && keyOut === undefined) {
    throw new KcertError('KCERT_USAGE', '--key-out or --key is required', {
      next: '--key-out ca-key.pem',
    })
  }
  if (keyOut === '-' && output !== 'text') {
    throw keyBesideReport('--key-out -', output, '--key-out ca-key.pem')
  }
  const issuanceLogFile = issuanceLog ?? (out === '-' ? undefined : defaultIssuanceLogPath(out))
  return {
    ...(out === '-' ? {} : { certificate: out }),
    ...(keyOut === undefined || keyOut === '-' ? {} : { key: keyOut }),
    ...(issuanceLogFile === undefined ? {} : { issuanceLog: issuanceLogFile }),
  }
}
