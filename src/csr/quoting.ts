// Values from requests are written by whoever asks: they are shown in quotes, and never at a length that buries the message.

const longestValue = 120
const mostValues = 6

/** Returns a value in quotes that show where it begins and ends; a very long one is cut. */
export function quoted(value: string): string {
  if (value.length <= longestValue) return JSON.stringify(value)
  return `${JSON.stringify(value.slice(0, longestValue))}… (${value.length} characters)`
}

/** Returns values in quotes, the first ones of very many. */
export function listed(values: readonly string[]): string {
  const shown = values.slice(0, mostValues).map(quoted).join(', ')
  return values.length <= mostValues ? shown : `${shown} and ${values.length - mostValues} more`
}
