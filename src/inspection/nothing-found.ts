import { readPem } from '../x509/pem.ts'
import type { Shape } from './sniff.ts'

const javaKeystore = 0xfeedfeed

/** Returns what to say of a named source in which nothing was found. */
export function nothingFound(bytes: Uint8Array, shape: Shape): { message: string; next: string } {
  const message = 'no certificate, request, key or kubeconfig in it'
  if (shape === 'empty') return { message: `empty: ${message}`, next: 'check what should have written it' }
  if (shape === 'pem') {
    const labels = [...new Set(readPem(bytes).blocks.map(({ label }) => label))].slice(0, 5)
    if (labels.length > 0) return { message: `${message}, only ${labels.join(', ')}`, next: 'check the path' }
  }
  const isJavas =
    bytes.length > 4 && Buffer.from(bytes.buffer, bytes.byteOffset, 4).readUInt32BE(0) === javaKeystore
  if (!isJavas) return { message, next: 'check the path' }
  return {
    message: 'a Java keystore (JKS), which kcert does not read',
    next: 'convert it, and inspect the result: keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12 -deststoretype pkcs12',
  }
}
