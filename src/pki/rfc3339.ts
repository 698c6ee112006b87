/** Returns the time in UTC without fractions of a second, as in Kubernetes objects. */
export function rfc3339(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z')
}
