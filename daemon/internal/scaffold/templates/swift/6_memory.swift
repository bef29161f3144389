
//: if assistant
/// The secret that identifies the user to the service.
enum AssistantUser {
    /// Returns given. Without it makes a secret, once, and stores it in a file that only the user can read.
    static func secret(_ app: String, _ given: String?) throws -> String {
        if let given = given {
            if isValid(given) { return given }
            throw GlassesError.assistant(
                "invalid_value", "user must be 32 lower-case hexadecimal digits", status: 400)
        }
        do {
            return try stored(fileOf(app, "glasses-user"))
        } catch {
            throw GlassesError.assistant(
                "no_storage", "the user's secret cannot be stored: \(error.localizedDescription)")
        }
    }

    /// Returns the secret that is stored in a file: 32 random hexadecimal digits, made if there are none yet.
    static func stored(_ file: URL) throws -> String { try read(file) ?? make(file) }

    private static func isValid(_ secret: String) -> Bool {
        secret.utf8.count == 32 && secret.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }

    /// The file is in Application Support, on Linux in XDG_DATA_HOME or ~/.local/share.
    static func fileOf(_ app: String, _ name: String) throws -> URL {
        let isPlain = { (c: Character) in c.isASCII && (c.isLetter || c.isNumber || c == "-" || c == "_") }
        let folder = String(app.map { isPlain($0) ? $0 : "_" })
        let data = try FileManager.default.url(
            for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
        return data.appendingPathComponent(folder).appendingPathComponent(name)
    }

    private static func read(_ file: URL) throws -> String? {
        if !FileManager.default.fileExists(atPath: file.path) { return nil }
        let text = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        return isValid(text) ? text : nil
    }

    private static func make(_ file: URL) throws -> String {
        var random = SystemRandomNumberGenerator()
        let secret = (0..<32).map { _ in String(Int.random(in: 0..<16, using: &random), radix: 16) }.joined()
        let own = file.appendingPathExtension(String(secret.prefix(8)))
        defer { try? FileManager.default.removeItem(at: own) }
        try write(secret, to: own)
        do { // the file gets its name in one step: no other process reads a part
            try FileManager.default.linkItem(at: own, to: file)
        } catch {
            if let first = try read(file) { return first }  // another process was first
            try? FileManager.default.removeItem(at: file)  // an unusable file, or a file system without links
            try FileManager.default.moveItem(at: own, to: file)
        }
        return secret
    }

    /// Writes a new file, whose folder is made if necessary. It is private before it is written.
    static func write(_ text: String, to file: URL) throws {
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        guard FileManager.default.createFile(
            atPath: file.path, contents: Data(), attributes: [.posixPermissions: 0o600])
        else { throw CocoaError(.fileWriteUnknown) }
        try Data(text.utf8).write(to: file)
    }
}
//: end
