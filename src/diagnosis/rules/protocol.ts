import { commandLine } from '../../errors/command-line.ts'
import { inspectCommand, kubeconfigOf, nodeFolders, probeCommand, serverName } from '../place.ts'
import { check, type Rule } from '../rule.ts'
import { alertWords } from './alert-words.ts'

// Alerts that say little of certificates, and handshakes that end without one.

export const protocolRules: readonly Rule[] = [
  {
    id: 'no-certificate-shown',
    words: [
      'no peer certificate available',
      'peer sent no certificates',
      'neither Certificates, GetCertificate, nor GetConfigForClient set in Config',
      'Secret is not supplied by SDS',
    ],
    means: (found) => `${serverName(found)} has no certificate, or speaks no TLS`,
    causes: [
      {
        id: 'started-without-certificate',
        detail:
          'the server was started without a certificate, or waits for the Secret that should hold it (a gateway: credentialName and its namespace); or what listens there is no TLS server',
        checks: (found) => [
          check(inspectCommand(found), 'no certificate, or that what answers does not speak TLS'),
          check('kcert inspect --cluster --only problem', 'Secrets without a certificate'),
        ],
      },
    ],
  },
  {
    id: 'alert-decrypt-error',
    words: [...alertWords('error decrypting message', 'decrypt error'), 'ERR_SSL_DECRYPT_ERROR_ALERT'],
    means: (found) =>
      found.side === 'server'
        ? 'in the log of a server: a client found the signature of this server wrong: its key is not that of its certificate'
        : `${serverName(found)} found the signature of the client wrong: the key is not that of the client certificate`,
    causes: [
      {
        id: 'key-of-another-certificate',
        detail:
          'certificate and private key do not belong together, and the program did not look at its start',
        checks: (found) => [
          check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'KEY_MISMATCH for the client of a user'),
          check(commandLine`kcert inspect ${nodeFolders} --only problem`, 'on the node: KEY_MISMATCH'),
        ],
      },
    ],
  },
  {
    id: 'alert-access-denied',
    words: alertWords('access denied', 'access denied'),
    means: (found) =>
      `${serverName(found)} took the client certificate for valid, and its policy does not let that client in`,
    causes: [
      {
        id: 'not-allowed-by-policy',
        detail: 'the server allows certain names only (etcd --client-cert-allowed-hostname, a mesh)',
        checks: (found) => [
          check(commandLine`kcert inspect ${kubeconfigOf(found)}`, 'as whom the client comes'),
        ],
      },
    ],
  },
  {
    id: 'handshake-garbled',
    words: [
      ...alertWords('decode error', 'decode error'),
      ...alertWords('illegal parameter', 'illegal parameter'),
      ...alertWords('unexpected message', 'unexpected message'),
      'tls: bad record MAC',
      'decryption failed or bad record mac',
      'tls: received unexpected handshake message',
      'The TLS connection was non-properly terminated',
    ],
    means: 'one side did not understand the TLS of the other, or what was sent is not what arrived',
    causes: [
      {
        id: 'changed-on-the-way',
        detail:
          'something in between changes the stream (a firewall that inspects TLS, a broken network card or MTU), or one of the TLS libraries has a bug; it is no matter of certificates',
        checks: (found) => [
          check(`${probeCommand(found)} --tls 1.2`, 'whether TLS 1.2 goes'),
          check(`${probeCommand(found)} --tls 1.3`, 'whether TLS 1.3 goes; and from another machine?'),
        ],
      },
    ],
  },
]
