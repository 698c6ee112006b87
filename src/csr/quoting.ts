// Requesters choose the values in requests, so kcert prints them in quotes and limits their length.

const longestValue = 120
const mostValues = 6

/** Returns a value in quotes; a very long one is shortened. */
export function quoted(value: string): string {
  if (value.length <= longestValue) return JSON.stringify(value)
  return `${JSON.stringify(value.slice(0, longestValue))}… (${value.length} characters)`
}

/** Returns values in quotes, only the first ones of very many. */
export function listed(values: readonly string[]): string {
  const shown = values.slice(0, mostValues).map(quoted).join(', ')
  return values.length <= mostValues ? shown : `${shown} and ${values.length - mostValues} more`
}
