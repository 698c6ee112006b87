/** Returns a function that derives a value once per object. The value is freed with the object. */
export function oncePer<Key extends object, Value>(derive: (key: Key) => Value): (key: Key) => Value {
  const derived = new WeakMap<Key, { readonly value: Value }>()
  return (key) => {
    const known = derived.get(key) ?? { value: derive(key) }
    derived.set(key, known)
    return known.value
  }
}
