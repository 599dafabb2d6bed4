//! Skills of a server, from a folder to a client that verifies them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use toolgate::{Client, Server, handlers::Skill};

const HEAD: &str = "---\nname: refunds\ndescription: How to refund\nallowed-tools: Bash\n---\n\n";

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("toolgate-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refunds(folder: &Folder) -> PathBuf {
    folder.write("refunds/SKILL.md", format!("{HEAD}Read `terms/eu.md`.\n"));
    folder.write("refunds/terms/eu.md", "14 days");
    folder.write("refunds/sums.bin", [0_u8, 159, 146, 150]);
    folder.write("refunds/logo.png", [0_u8, 159, 146, 150]);
    folder.write("refunds/.git/config", "secret");
    folder.write("other.md", "no skill");
    folder.0.join("refunds")
}

fn why(path: &Path) -> String {
    Skill::in_folder(path).unwrap_err().to_string()
}

/// Holds: XSKILL-06
#[tokio::test]
async fn a_folder_is_served_and_loaded_as_it_is() {
    let folder = Folder::new("skills-served");
    refunds(&folder);
    let skills = Skill::all_in(&folder.0).unwrap();
    assert_eq!(skills.len(), 1);
    let client = Client::in_process(Server::new("shop", "1").skills(skills))
        .await
        .unwrap();
    let listed = client.skills().await.unwrap();
    let skill = &listed[0];
    assert_eq!(
        (skill.name(), &*skill.title()),
        ("skill://refunds/SKILL.md", "refunds")
    );
    assert_eq!(skill.description().as_deref(), Some("How to refund"));
    let head = skill.definition().json().get("frontmatter").unwrap();
    assert_eq!(
        head.get("allowed-tools").unwrap().string().as_deref(),
        Some("Bash"),
        "verbatim"
    );
    let text = client.load_skill(skill).await.unwrap();
    assert!(text.ends_with("Read `terms/eu.md`.\n"), "{text}");
    for (file, member) in [
        ("terms/eu.md", "text"),
        ("skill://refunds/sums.bin", "blob"),
    ] {
        let read = client.skill_file(skill, file).await.unwrap();
        assert!(read.contents[0].get(member).is_some(), "{file}");
    }
    // No picture, which is taken out on the way: then it is not what is stated.
    let logo = client.skill_file(skill, "logo.png").await.unwrap_err();
    assert!(
        logo.public_message().contains("removed a part"),
        "{}",
        logo.public_message()
    );
    for strange in [
        ".git/config",
        "../other.md",
        "terms/../../other.md",
        "terms",
        "",
    ] {
        let read = client.skill_file(skill, strange).await;
        assert!(read.is_err(), "{strange}");
        let uri = format!("skill://refunds/{strange}");
        assert!(client.read(&uri).await.is_err(), "{uri}");
    }
    let same = client.skill("skill://refunds/SKILL.md").await.unwrap();
    assert_eq!(same.definition(), skill.definition());
    assert!(client.skill("skill://none/SKILL.md").await.is_err());
    let resources = client.resources().await.unwrap();
    assert_eq!(resources[0].name(), "skill://refunds/SKILL.md");
    assert_eq!(resources[0].description().as_deref(), Some("How to refund"));
}

#[tokio::test]
async fn a_skill_that_changed_is_not_read_under_an_old_entry() {
    let server = Server::new("shop", "1").skill(Skill::new(format!("{HEAD}One.")));
    let (front, registry) = server.build_with_registry().unwrap();
    let client = Client::builder().no_pins().in_process(front).await.unwrap();
    let old = client.skills().await.unwrap().remove(0);
    assert!(client.load_skill(&old).await.is_ok());
    registry
        .set_skill(Skill::new(format!("{HEAD}Two.")))
        .unwrap();
    let refused = client.load_skill(&old).await.unwrap_err();
    assert!(
        refused.public_message().contains("held back"),
        "{}",
        refused.public_message()
    );
    assert!(registry.remove_skill("skill://refunds/SKILL.md"));
    assert!(registry.set_skill(Skill::new("no head")).is_err());
}

#[test]
fn what_is_no_skill_is_refused_with_a_reason() {
    let folder = Folder::new("skills-refused");
    let path = refunds(&folder);
    symlink("/etc/passwd", path.join("terms/passwd")).unwrap();
    assert!(why(&path).contains("is a link"), "{}", why(&path));
    fs::remove_file(path.join("terms/passwd")).unwrap();
    symlink(folder.0.join("other.md"), path.join("here.md")).unwrap();
    assert!(why(&path).contains("is a link"), "also within");
    fs::remove_file(path.join("here.md")).unwrap();
    let other = Folder::new("skills-linked");
    symlink(&path, other.0.join("refunds")).unwrap();
    assert!(
        Skill::all_in(&other.0)
            .unwrap_err()
            .to_string()
            .contains("link")
    );
    let big = fs::File::create(path.join("big")).unwrap();
    big.set_len((16 << 20) + 1).unwrap();
    assert!(why(&path).contains("16 MiB"), "{}", why(&path));
    fs::remove_file(path.join("big")).unwrap();
    for n in 0..510 {
        folder.write(&format!("refunds/many/{n}"), "");
    }
    assert!(why(&path).contains("512 files"), "one over: {}", why(&path));
    fs::remove_dir_all(path.join("many")).unwrap();
    assert!(Skill::in_folder(&path).is_ok());
    let renamed = folder.0.join("returns");
    fs::rename(&path, &renamed).unwrap();
    assert!(
        why(&renamed).contains("differs from that of the directory"),
        "{}",
        why(&renamed)
    );
    fs::remove_file(renamed.join("SKILL.md")).unwrap();
    assert!(why(&renamed).contains("no SKILL.md"));
    let skill = Skill::new(HEAD);
    for (wrong, why) in [
        (
            skill.clone().file("../a", ""),
            "outside the folder of the skill",
        ),
        (
            skill.clone().file("a/./b", ""),
            "outside the folder of the skill",
        ),
        (skill.clone().file("SKILL.md", ""), "twice"),
        (
            Skill::new("---\nname: Refunds\ndescription: x\n---\n"),
            "name",
        ),
        (Skill::new("---\nname: a\n---\n"), "description"),
    ] {
        let error = Server::new("s", "1")
            .skill(wrong)
            .build()
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(why), "{error}");
    }
    let twice = Server::new("s", "1")
        .skill(skill.clone())
        .skill(skill.clone());
    assert!(twice.build().is_err());
    let apart = Server::new("s", "1")
        .skill(skill.clone())
        .skill(skill.under("eu"));
    assert!(apart.build().is_ok());
}

#[tokio::test]
async fn older_revisions_know_no_skills() {
    let server = Server::new("shop", "1")
        .skill(Skill::new(HEAD))
        .build()
        .unwrap();
    let client = Client::builder().revision("2025-11-25").in_process(server);
    let client = client.await.unwrap();
    assert!(client.skills().await.unwrap().is_empty());
    let text = client.read("skill://refunds/SKILL.md").await.unwrap();
    assert!(
        text.contents[0].get("text").is_some(),
        "a resource like others"
    );
}
