import { type Certificate, readCertificates } from '../x509/certificate.ts'
import type { Context } from './context.ts'
import { inFile, readInput } from './input.ts'

/** Returns the certificates of these files, "-" for standard input. Every error names its file. */
export async function readCertificateFiles(
  files: readonly string[],
  context: Context,
): Promise<Certificate[]> {
  const certificates: Certificate[] = []
  for (const file of files) {
    const bytes = await readInput(file, context)
    certificates.push(...inFile(file, () => readCertificates(bytes)))
  }
  return certificates
}
