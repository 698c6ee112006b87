import { KcertError } from '../errors/kcert-error.ts'
import { type FlagShapes, partsOf } from './operands.ts'

/**
 * Returns the command line with `-o jsonpath=TEMPLATE` as `-o jsonpath`, which oclif accepts as a format, and the template
 * separately. Throws KCERT_USAGE for the format without a template.
 */
export function withoutTemplate(
  argv: readonly string[],
  shapes: FlagShapes,
): { readonly argv: string[]; readonly template?: string } {
  // Few command lines use it, and this runs for each command line.
  if (!argv.some((word) => word.includes('jsonpath')) || !shapes.output?.options?.includes('jsonpath'))
    return { argv: [...argv] }
  const plain: string[] = []
  let template: string | undefined
  for (const { words, names, isBehindEnd } of partsOf(argv, shapes)) {
    if (isBehindEnd && !plain.includes('--')) plain.push('--')
    const isOutput = names.at(-1) === 'output'
    const last = words.at(-1) ?? ''
    const [, flag = '', given] = (isOutput && /^(.*?)jsonpath(?:=(.*))?$/s.exec(last)) || []
    if (isOutput && /^(?:|--output=|-\w+=?)$/.test(flag) && last.includes('jsonpath')) {
      if (!given)
        throw new KcertError('KCERT_USAGE', 'no jsonpath template given', {
          why: "write it behind an equals sign, as in -o jsonpath='{.kind}'",
        })
      template = given
      plain.push(...words.slice(0, -1), `${flag}jsonpath`)
    } else plain.push(...words)
  }
  return { argv: plain, ...(template !== undefined && { template }) }
}
