// What an operator pastes: in a line of advice nothing but commands follows the first command. "and restart it" behind a command
// becomes its arguments.

const programs =
  /^(?:kcert|cfssljson|csplit|kubectl|kubeadm|openssl|systemctl|journalctl|crictl|ssh|ssh-keygen|keytool|sudo|ls|df|mv|rm|cp|ln|cat|chmod|chown|mkdir|mktemp|head|xargs|cd|tail|kill|grep|sed|tr|base64|sha256sum|iconv|ss|nc|echo|date|jq|shred|command|umask|timedatectl|sh|docker|\0)$/

/** Words of sentences that no command has as an argument of its own. */
const prose =
  /^(?:again|an|and|anew|any|are|as|at|be|before|but|by|first|for|from|gives|has|if|into|is|it|its|lists|makes|of|on|once|or|shows|that|the|them|then|there|this|to|until|what|when|where|which|who|whoever|with|without|writes|yourself)$/i

/** Returns where the text begins to be commands: at its beginning or after ": ". Undefined where it is prose alone. */
export function commandsOf(text: string): string | undefined {
  for (const { index, 0: mark } of text.matchAll(/^|: /g)) {
    const rest = text.slice(index + mark.length)
    const [first = '', second = ''] = rest.replace(/^\(/, '').split(/[\s;]/)
    // "install it" and "find out where" are no commands; a program that is a verb too has a flag, a path or a value behind it.
    if (first !== '\0' && programs.test(first) && !prose.test(second.replace(/[,:;]$/, ''))) return rest
  }
  return undefined
}

/** Returns the first word that is no part of a command, or undefined where a shell gets nothing but commands. */
export function wordOfProse(commands: string): string | undefined {
  let isFirst = true
  for (const word of tokensOf(commands)) {
    if (operator.test(word)) isFirst = word !== ')'
    else if (isFirst && !/^\w+=/.test(word) ? !programs.test(word) : prose.test(word) || /[,:?]$/.test(word))
      return word
    else if (!/^\w+=/.test(word)) isFirst = false
  }
  return undefined
}

/** Returns the words of each command in the line, quoted as they are, without assignments and redirections. */
export function simpleCommands(commands: string): string[][] {
  const all: string[][] = [[]]
  let before = ''
  for (const word of tokensOf(commands)) {
    const isRedirection = /^\d*[<>]/.test(word) || /^\d*[<>]+$/.test(before)
    const isAssignment = all.at(-1)!.length === 0 && /^\w+=/.test(word)
    if (operator.test(word)) all.push([])
    else if (!isRedirection && !isAssignment) all.at(-1)!.push(word)
    before = word
  }
  return all.filter((words) => words.length > 0)
}

const operator = /^(?:&&|\|\|?|[;()])$/

/** Words and operators. Quoted words count as part of the word they are in. */
function tokensOf(commands: string): string[] {
  return Array.from(
    commands.matchAll(
      /(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|\\.|[^\s;&|()'"\\]|&(?=\d))+|&&|\|\|?|[;()]/g,
    ),
    ([token]) => token,
  )
}
