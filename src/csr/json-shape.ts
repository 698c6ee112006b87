import { quoted } from './quoting.ts'

/** The type of a JSON value; fields that are not listed may have any type. */
export type Shape =
  | 'text'
  | 'number'
  | 'boolean'
  | { readonly each: Shape }
  | { readonly values: Shape }
  | { readonly fields: Readonly<Record<string, Shape>>; readonly needs?: readonly string[] }

export const texts = { each: 'text' } as const satisfies Shape
export const pairs = { values: 'text' } as const satisfies Shape

/** The TypeScript type of a value in which `fitted` finds no error, for the fields that the shape lists. */
export type Fitted<Form> = Form extends 'text'
  ? string
  : Form extends 'number'
    ? number
    : Form extends 'boolean'
      ? boolean
      : Form extends { readonly each: infer One }
        ? readonly Fitted<One>[]
        : Form extends { readonly values: infer One }
          ? Readonly<Record<string, Fitted<One>>>
          : Form extends { readonly fields: infer Fields; readonly needs: readonly (infer Needed)[] }
            ? { readonly [Name in Extract<keyof Fields, Needed>]: Fitted<Fields[Name]> } & {
                readonly [Name in Exclude<keyof Fields, Needed>]?: Fitted<Fields[Name]>
              }
            : never

/** The metadata fields that kcert reads of every kind. */
export const metadataFields = {
  name: 'text',
  uid: 'text',
  resourceVersion: 'text',
  creationTimestamp: 'text',
  deletionTimestamp: 'text',
  labels: pairs,
  annotations: pairs,
} as const satisfies Readonly<Record<string, Shape>>

/**
 * Returns the value with each listed field of its type or absent: null counts as absent, as in Kubernetes. Adds a fragment to
 * `faults` for each field of another type.
 */
export function fitted(value: unknown, form: Shape, path: string, faults: string[]): unknown {
  const isFit =
    typeof form === 'string'
      ? typeof value === typeOf[form]
      : Array.isArray(value) === 'each' in form && typeof value === 'object' && value !== null
  if (!isFit) faults.push(`${path || 'it'} is not ${wordFor(form)}`)
  if (!isFit || typeof form === 'string') return value
  if ('each' in form)
    return (value as unknown[]).map((one, index) => fitted(one, form.each, `${path}[${index}]`, faults))
  const entries = Object.entries(value as object).filter(([, one]) => one !== null)
  if ('fields' in form) {
    const missing = (form.needs ?? []).filter((name) => !entries.some(([key]) => key === name))
    for (const name of missing) faults.push(`${join(path, name)} is missing`)
  }
  return Object.fromEntries(
    entries.map(([key, one]) => {
      const inner = 'values' in form ? form.values : Object.hasOwn(form.fields, key) && form.fields[key]
      // A key of a map can be any text.
      const place = 'values' in form ? `${path}[${quoted(key)}]` : join(path, key)
      return [key, inner ? fitted(one, inner, place, faults) : one]
    }),
  )
}

const typeOf = { text: 'string', number: 'number', boolean: 'boolean' } as const

function wordFor(form: Shape): string {
  if (typeof form === 'string') return `a ${typeOf[form]}`
  return 'each' in form ? 'a list' : 'an object'
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}
