/** Returns at most five names, and how many more there are. */
export function shortList(names: readonly string[], between = ', '): string {
  return `${names.slice(0, 5).join(between)}${names.length > 5 ? ` and ${names.length - 5} more` : ''}`
}
