import { createPublicKey } from 'node:crypto'
import { publicKeyFacts } from '../../ca/facts.ts'
import type { KeyReport } from '../../ca/report.ts'
import { KcertCommand } from '../../cli/base-command.ts'
import { checkFiles } from '../../cli/command-files.ts'
import { keyBesideReport } from '../../cli/exposed-key.ts'
import * as Flag from '../../cli/flags.ts'
import { readPassword } from '../../cli/input.ts'
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
  static override summary = 'Generate a private key, in a file with mode 0600.'

  static override description =
    `The file is created with mode 0600, whatever the umask. An existing file is overwritten only with --force, and a symbolic link or
FIFO never. The key is printed only with --out -.

The formats of --format:

  pkcs8       read by every tool; the only format that can be encrypted (PBES2: PBKDF2 with 600,000 rounds, AES-256)
  sec1        "EC PRIVATE KEY", ECDSA only
  pkcs1       "RSA PRIVATE KEY", RSA only
  kubernetes  as Kubernetes' own tools write keys: SEC1 for ECDSA, PKCS#1 for RSA, PKCS#8 for Ed25519`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the key was written',
    usage: 'wrong usage, or the password file cannot be read',
    unreachable: 'the file cannot be written',
    refused: 'the file already exists, or is not a regular file',
  })

  static override examples = KcertCommand.examplesOf({
    'Generate an ECDSA P-256 key, as the kubelet does': 'kcert key generate --out server-key.pem',
    'Generate an RSA key, in the format of kubeadm':
      'kcert key generate --key-type RSA-2048 --format kubernetes --out sa.key',
    'Encrypt the key with the password on the first line of a file':
      'kcert key generate --key-type Ed25519 --password-file password.txt --out ca-key.pem',
    'Pipe the key to another program, without writing it to disk':
      '<%= config.bin %> key generate --out - | vault kv put secret/server key=-',
  })

  static override flags = {
    out: Flag.value('FILE', 'file for the key; "-" for standard output', { required: true }),
    'key-type': Flag.value('TYPE', `type of the key: ${keyTypeNames.join(', ')}`, { default: 'ECDSA-P256' }),
    format: Flag.word(keyFormats, 'format of the key', { default: 'pkcs8' }),
    'password-file': Flag.value(
      'FILE',
      'encrypt the key with the first line of this file; "-" for standard input',
    ),
    force: Flag.boolean('overwrite an existing file'),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(KeyGenerate)
    const { out, format, force } = flags
    const keyType = parseKeyType(flags['key-type'])
    const toStandardOutput = out === '-'
    if (toStandardOutput && flags.output !== 'text')
      throw keyBesideReport('--out -', flags.output, '--out key.pem')
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
      return this.answer(pem)
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
    return this.show(flags.output, report, renderKey, { notices })
  }
}

const encryptedNotice =
  'Kubernetes components do not read encrypted keys: decrypt a copy for them with openssl pkey'
