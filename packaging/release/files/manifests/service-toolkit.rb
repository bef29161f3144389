# Builds the service from its source, so that nothing that is downloaded has to be notarised by Apple.
class ServiceToolkit < Formula
  desc "Build apps for smart glasses and prove that they work"
  homepage "{{homepage}}"
  url "{{url}}/{{source}}"
  sha256 "{{source_sha256}}"
  license "Apache-2.0"

  depends_on "go" => :build

  def install
    system "make", "build", "BIN=#{libexec}", "VERSION=#{version}", "COMMIT={{commit}}", "BUILT_AT={{built_at}}"
    rm libexec/"desk-go"
    rm libexec/"hello-glasses"
    rm libexec/"service-backend"
    bin.install_symlink libexec/"servicectl"
    bin.install_symlink libexec/"service-mcp"
    generate_completions_from_executable(bin/"servicectl", "completion")
  end

  def caveats
    <<~EOS
      Register it with your coding agents:
        servicectl agent add --all
      Before you uninstall, `servicectl uninstall --purge` removes these entries and your settings.
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/servicectl version --json")
  end
end
