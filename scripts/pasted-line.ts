// The text that an operator pastes. In a line of advice, only commands may follow the first command: "and restart it" after a
// command becomes its arguments.

const programs =
  /^(?:kcert|cfssljson|csplit|kubectl|kubeadm|openssl|systemctl|journalctl|crictl|ssh|ssh-keygen|keytool|sudo|ls|df|mv|rm|cp|ln|cat|chmod|chown|mkdir|mktemp|head|xargs|cd|tail|kill|grep|sed|tr|base64|sha256sum|iconv|ss|nc|echo|date|jq|shred|command|umask|timedatectl|sh|docker|\0)$/

/** Words of sentences that are not an argument of any command. */
const prose =
  /^(?:again|an|and|anew|any|are|as|at|be|before|but|by|first|for|from|gives|has|if|into|is|it|its|lists|makes|of|on|once|or|shows|that|the|them|then|there|this|to|until|what|when|where|which|who|whoever|with|without|writes|yourself)$/i

/** Returns where the commands in a text begin: at its beginning or after ": ". Undefined for a text without commands. */
export function commandsOf(text: string): string | undefined {
  for (const { index, 0: mark } of text.matchAll(/^|: /g)) {
    const rest = text.slice(index + mark.length)
    const [first = '', second = ''] = rest.replace(/^\(/, '').split(/[\s;]/)
    // "install it" and "find out where" are not commands. After a program whose name is also a verb comes a flag, a path or a
    // value.
    if (first !== '\0' && programs.test(first) && !prose.test(second.replace(/[,:;]$/, ''))) return rest
  }
  return undefined
}

/** Returns the first word that is not part of a command; undefined if a shell would get only commands. */
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

/** Returns the words of each command in the line, quoted as in the text, without assignments and redirections. */
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

/** Words and operators. Quoted words belong to the word that contains them. */
function tokensOf(commands: string): string[] {
  return Array.from(
    commands.matchAll(
      /(?:\$'(?:\\.|[^'\\])*'|'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|\\.|[^\s;&|()'"\\]|&(?=\d))+|&&|\|\|?|[;()]/g,
    ),
    ([token]) => token,
  )
}
