// Parses a page as strictly as kcert writes it, so that errors which a browser would silently repair fail the test.

export interface Element {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: (Element | string)[]
}

const withoutEnd = new Set(['meta', 'br', 'wbr'])
const entity = /&(?:amp|lt|gt|quot|#39|#96);/g
const decoded: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&#96;': '`',
}

/**
 * Returns the element `html` of a page. Throws when tags are not closed in order, an attribute is not quoted or text contains
 * "<".
 */
export function readHtml(page: string): Element {
  if (!page.startsWith('<!doctype html>\n')) throw new Error('no doctype')
  const root: Element = { name: '', attributes: {}, children: [] }
  const open = [root]
  let rest = page.slice('<!doctype html>\n'.length)
  while (rest !== '') {
    const parent = open.at(-1)!
    if (parent.name === 'style') {
      const end = rest.indexOf('</style>')
      parent.children.push(rest.slice(0, end))
      open.pop()
      rest = rest.slice(end + '</style>'.length)
      continue
    }
    const tag = /^<(\/?)([a-z][a-z0-9]*)((?: [a-z][a-z0-9-]*(?:="[^"<>]*")?)*)(\/?)>/i.exec(rest)
    if (tag === null) {
      const text = /^[^<]+/.exec(rest)?.[0]
      if (text === undefined) throw new Error(`neither tag nor text: ${rest.slice(0, 80)}`)
      parent.children.push(plain(text))
      rest = rest.slice(text.length)
      continue
    }
    const [whole, isEnd, name = '', attributes = '', isClosed] = tag
    rest = rest.slice(whole.length)
    if (isEnd === '/') {
      if (parent.name !== name) throw new Error(`</${name}> closes <${parent.name}>`)
      open.pop()
      continue
    }
    const element: Element = { name, attributes: attributesOf(attributes), children: [] }
    parent.children.push(element)
    if (isClosed !== '/' && !withoutEnd.has(name)) open.push(element)
  }
  if (open.length > 1) throw new Error(`<${open.at(-1)!.name}> is not closed`)
  return root.children.find((child) => typeof child === 'object')!
}

/** Returns the element and all its descendants in order. */
export function elementsOf(element: Element): Element[] {
  return [
    element,
    ...element.children.flatMap((child) => (typeof child === 'string' ? [] : elementsOf(child))),
  ]
}

/** Returns the visible text. */
export function textOf(element: Element): string {
  if (element.name === 'style' || element.name === 'head') return ''
  return element.children.map((child) => (typeof child === 'string' ? child : textOf(child))).join('')
}

function attributesOf(text: string): Record<string, string> {
  return Object.fromEntries(
    [...text.matchAll(/ ([a-z][a-z0-9-]*)(?:="([^"]*)")?/gi)].map(([, name, value = '']) => [
      name!,
      plain(value),
    ]),
  )
}

function plain(text: string): string {
  const left = text.replaceAll(entity, '')
  if (left.includes('&')) throw new Error(`an "&" that is no entity: ${text}`)
  return text.replaceAll(entity, (one) => decoded[one]!)
}
