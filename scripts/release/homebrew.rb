# A small part of Homebrew: ruby homebrew.rb FORMULA ARCH PREFIX evaluates a formula as Homebrew on Linux does. In the folder of the unpacked archive, it runs `install`
# with PREFIX, and then `test`. It prints the URL and the SHA-256 of the archive for ARCH (intel or arm).
require 'fileutils'
require 'pathname'

FORMULA, ARCH, PREFIX = ARGV

module OS
  def self.mac? = false
end

class Pathname
  def install(*sources)
    mkpath
    sources.flatten.each do |source|
      raise "#{source} does not exist" unless File.exist?(source) || File.symlink?(source)
      system('mv', source.to_s, to_s, exception: true)
    end
  end
end

class Formula
  FACTS = {}
  class << self
    attr_reader :tests
    %i[desc homepage version license url sha256].each { |name| define_method(name) { |value| FACTS[name] = value } }
    def depends_on(*) = nil
    def on_macos = nil
    def on_linux = yield
    def on_intel = ARCH == 'intel' ? yield : nil
    def on_arm = ARCH == 'arm' ? yield : nil
    def test(&block) = @tests = block
  end
  def version = FACTS.fetch(:version)
  def folder(path) = Pathname(PREFIX) / path
  def bin = folder('bin')
  def man1 = folder('share/man/man1')
  def bash_completion = folder('etc/bash_completion.d')
  def zsh_completion = folder('share/zsh/site-functions')
  def fish_completion = folder('share/fish/vendor_completions.d')
  def shell_output(command) = `#{command}`
  def assert_match(expected, actual) = actual.include?(expected) || raise("#{actual} does not contain #{expected}")
end

load FORMULA
formula = Kcert.new
formula.install
formula.instance_eval(&Kcert.tests) if ARCH == 'intel'
puts Formula::FACTS.fetch(:url), Formula::FACTS.fetch(:sha256)
