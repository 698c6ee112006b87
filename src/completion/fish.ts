import type { CompletedCommand, CompletedFlag, Wanted } from './tree.ts'

/** Returns the completion script for fish. */
export function fishCompletion(tree: readonly CompletedCommand[]): string {
  const paths = tree.map(({ path }) => path).filter((path) => path !== '')
  return `# fish completion of kcert: kcert completion fish | source

function __kcert_path
    set -l said
    for word in (commandline -opc)[2..]
        set -l longer (string join ' ' -- $said $word)
        if contains -- $longer ${paths.map(quoted).join(' ')}
            set said (string split ' ' -- $longer)
        else
            break
        end
    end
    string join ' ' -- $said
end

function __kcert_at
    test "$(__kcert_path)" = "$argv[1]"
end

# Without an operand so far, another word of the command may come.
function __kcert_goes_on
    __kcert_at $argv[1]; and test (count (commandline -opc)) -eq (math 1 + (count (string split -n ' ' -- $argv[1])))
end

complete -c kcert -e
complete -c kcert -f
${tree.map(linesOf).join('\n')}
`
}

function linesOf({ path, next, flags, operand, isCommand }: CompletedCommand): string {
  const at = `complete -c kcert -n ${quoted(`__kcert_at ${quoted(path)}`)}`
  const goesOn = `complete -c kcert -n ${quoted(`__kcert_goes_on ${quoted(path)}`)}`
  return [
    ...next.map(([word, summary]) => `${goesOn} -a ${quoted(word)} -d ${quoted(summary)}`),
    ...flags.map((flag) => `${at} ${flagText(flag)}`),
    ...(isCommand && operand !== 'nothing' ? [`${at} ${wantedText(operand, false)}`] : []),
  ].join('\n')
}

function flagText({ names, summary, value }: CompletedFlag): string {
  const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  return [...words, ...(value === undefined ? [] : [wantedText(value, true)]), `-d ${quoted(summary)}`].join(
    ' ',
  )
}

/** In fish, `-x` means: takes a value, and offers no files. */
function wantedText(value: Wanted, isValue: boolean): string {
  if (value === 'file') return isValue ? '-r -F' : '-F'
  if (value === 'folder') return `${isValue ? '-x' : '-f'} -a '(__fish_complete_directories)'`
  return value === 'nothing' ? '-x' : `${isValue ? '-x' : '-f'} -a ${quoted(value.join(' '))}`
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
