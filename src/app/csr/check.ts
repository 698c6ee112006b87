import type { Context } from '../../cli/context.ts'
import { readInput } from '../../cli/input.ts'
import { requestNameOf } from '../../csr/request-name.ts'
import { exitCodes } from '../../errors/codes.ts'
import { KcertError } from '../../errors/kcert-error.ts'

/** The meaning of an operand. */
export type CheckInput =
  | { readonly bytes: Uint8Array }
  | { readonly name: string; readonly noFile: KcertError | undefined }

/**
 * Returns the content of a file, or the name of a cluster object if there is no such file or the flags select the cluster.
 * Throws as `readInput` does for an operand that cannot be the name of an object.
 */
export async function checkInput(
  operand: string,
  asksCluster: boolean,
  context: Context,
): Promise<CheckInput> {
  const name = requestNameOf(operand)
  if (asksCluster) return { name, noFile: undefined }
  try {
    return { bytes: await readInput(operand, context) }
  } catch (error) {
    const isMissing = error instanceof KcertError && error.code === 'KCERT_FILE_NOT_FOUND'
    // Names of objects contain no slash.
    if (!isMissing || name.includes('/')) throw error
    return { name, noFile: name === operand ? error : undefined }
  }
}

/** Returns the error for an operand that is neither a file nor a cluster object. */
export function operandNotFound(noFile: KcertError, onCluster: KcertError): KcertError {
  const isAbsent = onCluster.code === 'KCERT_API_NOT_FOUND'
  const isAnswered = isAbsent || onCluster.exitCode === exitCodes.usage
  const next = noFile.next ?? 'kcert csr list'
  return new KcertError(
    isAnswered ? 'KCERT_FILE_NOT_FOUND' : onCluster.code,
    isAbsent
      ? `${noFile.message}, and the cluster has no request of this name`
      : `${noFile.message}, and kcert could not check whether the cluster has a request of this name`,
    {
      why: [onCluster.message, onCluster.why].filter(Boolean).join(': '),
      fix: isAnswered ? noFile.fix : onCluster.fix,
      next: isAnswered ? next : (onCluster.next ?? next),
      cause: onCluster,
    },
  )
}
