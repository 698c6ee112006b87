import { createPublicKey } from 'node:crypto'
import { publicKeyFacts } from '../../ca/facts.ts'
import type { KeyReport } from '../../ca/report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import { keyBesideReport } from '../../cli/exposed-key.ts'
import { booleanFlag, reportFormatFlag, valueFlag, wordFlag } from '../../cli/flags.ts'
import { readPassword } from '../../cli/input.ts'
import { type ExitCode, exitCodes } from '../../errors/codes.ts'
import { renderKey } from '../../output/ca.ts'
import { writeKeyFile } from '../../system/output-file.ts'
import { readPublicKey } from '../../x509/keys.ts'
import {
  formatOfKey,
  generatePrivateKey,
  keyFormats,
  keyTypeName,
  keyTypeNames,
  parseKeyType,
  writePrivateKey,
} from '../../x509/new-key.ts'

export default class KeyGenerate extends KcertCommand {
  static override summary = 'Make a private key in a file that nobody else can read.'

  static override description =
    `The file has mode 0600 from its first byte, whatever the umask. A file, symbolic link or FIFO that is there is not
overwritten; with --force a file is replaced, and a key is never written through a link or into a FIFO. The key appears in no
output, unless --out - asks for it.

  pkcs8       what every tool reads; the only format that can be encrypted (PBES2: PBKDF2 with 600,000 rounds, AES-256)
  sec1        "EC PRIVATE KEY", ECDSA only
  pkcs1       "RSA PRIVATE KEY", RSA only
  kubernetes  as Kubernetes' own tools write it: SEC1 for ECDSA, PKCS#1 for RSA, PKCS#8 for Ed25519`

  static override exitCodes = {
    [exitCodes.done]: 'the key is written',
    [exitCodes.usage]: 'wrong usage, or a password file that cannot be read',
    [exitCodes.unreachable]: 'the file could not be written',
    [exitCodes.refused]: 'something is there already, or is no file that a key may be written to',
  }

  static override examples = KcertCommand.examplesOf({
    'ECDSA P-256, as the kubelet makes its own': 'kcert key generate --out server-key.pem',
    'RSA, in the format that kubeadm writes':
      'kcert key generate --key-type RSA-2048 --format kubernetes --out sa.key',
    'Encrypted, the password on the first line of a file':
      'kcert key generate --key-type Ed25519 --password-file password.txt --out ca-key.pem',
    'Into another program, never onto a disk':
      '<%= config.bin %> key generate --out - | vault kv put secret/server key=-',
  })

  static override flags = {
    out: valueFlag('FILE', 'where to write it; "-" prints it', { required: true }),
    'key-type': valueFlag('TYPE', `what kind: ${keyTypeNames.join(', ')}`, { default: 'ECDSA-P256' }),
    format: wordFlag(keyFormats, 'how it is written', { default: 'pkcs8' }),
    'password-file': valueFlag('FILE', 'encrypt it with the first line of this file; "-" for standard input'),
    force: booleanFlag('replace a file that is there'),
    output: reportFormatFlag(),
  }

  protected override async perform(): Promise<ExitCode> {
    const { flags } = await this.parse(KeyGenerate)
    const { out, format, force } = flags
    const keyType = parseKeyType(flags['key-type'])
    const toStandardOutput = out === '-'
    if (toStandardOutput && flags.output !== 'text')
      throw keyBesideReport('--out -', flags.output, 'leave -o out, or name a file: --out key.pem')
    checkFiles({
      inputs: [{ by: '--password-file', path: flags['password-file'] }],
      outputs: [{ by: '--out', path: out, holds: 'key' }],
      replace: force,
    })
    const password = await readPassword(flags['password-file'], this.context)

    const key = generatePrivateKey(keyType)
    const pem = writePrivateKey(key, format, password)
    const notices = password === undefined ? [] : [encryptedNotice]
    if (toStandardOutput) {
      this.note(notices)
      await this.answer(pem)
      return exitCodes.done
    }
    writeKeyFile(out, pem, { replace: force })
    const report: KeyReport = {
      apiVersion: 'kcert/v1',
      kind: 'GeneratedKey',
      file: out,
      keyType: keyTypeName(keyType),
      format: formatOfKey(key, format),
      encrypted: password !== undefined,
      publicKey: publicKeyFacts(readPublicKey(createPublicKey(key).export({ format: 'der', type: 'spki' }))),
      notices,
    }
    await this.show(flags.output, report, renderKey, notices)
    return exitCodes.done
  }
}

const encryptedNotice =
  'Kubernetes reads no encrypted keys: its components need it decrypted (openssl pkey -in FILE -out FILE)'
