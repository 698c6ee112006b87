import { commandLine } from '../errors/command-line.ts'
import type { Advice } from '../errors/kcert-error.ts'
import { readPem } from '../x509/pem.ts'
import type { Shape } from './sniff.ts'

const javaKeystore = 0xfeedfeed

/** Returns the problem of a target without certificates, requests, keys and kubeconfigs. */
export function nothingFound(
  source: string,
  bytes: Uint8Array,
  shape: Shape,
): Advice & { readonly message: string } {
  const message = 'it contains no certificate, request, key or kubeconfig'
  if (shape === 'empty') return { message: `empty: ${message}`, fix: 'check the program that writes it' }
  if (shape === 'pem') {
    const labels = [...new Set(readPem(bytes).blocks.map(({ label }) => label))].slice(0, 5)
    if (labels.length > 0) return { message: `${message}, only ${labels.join(', ')}`, fix: 'check the path' }
  }
  const isJavas =
    bytes.length > 4 && Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32BE(0) === javaKeystore
  if (!isJavas) return { message, fix: 'check the path' }
  return {
    message: 'a Java keystore (JKS), which kcert does not read',
    fix: 'convert it, then inspect the result',
    next: commandLine`keytool -importkeystore -srckeystore ${source} -destkeystore ${`${source}.p12`} -deststoretype pkcs12`,
  }
}
