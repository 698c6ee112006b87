import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { kcert } from './program.ts'

const readme = readFileSync('README.md', 'utf8')

test('the session in the README matches the output of the program', () => {
  const [, command = '', printed = ''] = /```console\n\$ kcert ([^\n]+)\n([\s\S]*?)```/.exec(readme) ?? []
  const day = /This output is from (\d{4}-\d{2}-\d{2})/.exec(readme)?.[1]
  const { stdout, exit } = kcert([...command.split(' '), '--at', `${day}T12:00:00Z`])
  expect(stdout).toBe(printed)
  expect(exit).toBe(3)
})

test('the README lists the commands in package.json', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  expect(readme).toContain('npm ci && npm start -- inspect examples/kubelet.kubeconfig')
  expect(readme).toContain('npm ci && npm test')
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test']))
})

test('the README installs the version of package.json, and checks each download before it is installed', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  const lines = readme.split('\n').filter((line) => line.startsWith('curl '))
  expect(lines.map((line) => /SHA256SUMS,([^}]+)\}/.exec(line)?.[1])).toEqual([
    `kcert_${version}_$(dpkg --print-architecture).deb`,
    `kcert-${version}-1.$(uname -m).rpm`,
    'install.sh',
    `kcert-${version}.tgz`,
  ])
  for (const line of lines) expect(line).toContain('" && sha256sum -c --ignore-missing SHA256SUMS && ')
})
