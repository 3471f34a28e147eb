//! Images of codes that were asked for, within a bound.

use std::collections::BTreeMap;

use code_agent::access::Peer;
use code_agent::protocol::{
    Address, Ask, Content, ImagePlace, Request, Resolved, ResolvedCode, VERSION,
};
use code_agent::{BuildId, ImageChange, Images, Limits, ProcessKey, Processes};
use code_image::build_id_of_image;
use jitscribe::{Code, Line, LoadedCode, Scribe};

use crate::common::{ROOT, Whole, facts, found};

const MIB: u64 = 1 << 20;
/// What the image of a small code takes: a page of headers, and the text with all else in another one.
const IMAGE: u64 = 2 * 4096;

/// A process of a user, and the folder of images as a map.
struct Scene {
    scribe: Scribe,
    table: Processes<Whole>,
    folder: BTreeMap<BuildId, Vec<u8>>,
    loaded: Vec<LoadedCode>,
    now: u64,
}

impl Scene {
    fn new(most: u64) -> Self {
        let mut this = Self {
            scribe: Scribe::builder().bytes().build(),
            table: Processes::new(Limits::default()),
            folder: BTreeMap::new(),
            loaded: Vec::new(),
            now: 1 << 50,
        };
        this.table.images = Images::new(most);
        this.process(1, 1000);
        this
    }

    /// Adds a process with this id, which belongs to a user, and has the same log.
    fn process(&mut self, pid: u32, owner: u32) {
        let key = ProcessKey { pid, start: 9 };
        self.table.found(key, facts(owner), found(&self.scribe));
    }

    fn load(&mut self, address: u64, name: &str, bytes: &[u8]) {
        let lines = [Line::new(0, "/src/a.lang", 7)];
        let code = Code::new(bytes).runs_at(address).named(name).lines(&lines);
        self.loaded.push(self.scribe.load(&code));
    }

    fn ask(&mut self, peer: Peer, pid: u32, addresses: &[u64]) -> Vec<ResolvedCode> {
        self.now += 1_000_000_000;
        let asked = |&address| Address { pid, start: None, address, time: None };
        let asked: Vec<Address> = addresses.iter().map(asked).collect();
        let answers = self.table.resolve(peer, &asked, self.now).into_iter();
        let code = |answer| match answer {
            Resolved::Code(code) => *code,
            other => panic!("{other:?}"),
        };
        answers.map(code).collect()
    }

    /// What is answered once the image is written, if there is one.
    fn image(&mut self, pid: u32, address: u64) -> Option<ImagePlace> {
        let image = self.ask(ROOT, pid, &[address]).remove(0).image;
        image.or_else(|| {
            self.apply();
            self.ask(ROOT, pid, &[address]).remove(0).image
        })
    }

    /// Makes the changes, as a disk that is never full.
    fn apply(&mut self) {
        let mut changes = self.table.images.take_changes();
        while !changes.is_empty() {
            for change in changes {
                match change {
                    ImageChange::Write { id, content } => {
                        assert_eq!(build_id_of_image(&content), Some(id.0));
                        self.table.images.written(id, content.len() as u64);
                        self.folder.insert(id, content);
                    }
                    ImageChange::Remove(id) => drop(self.folder.remove(&id)),
                }
            }
            // What had to make way while it was written is removed again.
            changes = self.table.images.take_changes();
        }
        assert_eq!(self.table.images.size().0, self.folder.len() as u64);
    }

    fn has(&self, place: &ImagePlace) -> bool {
        self.folder.keys().any(|id| id.to_string() == place.build_id)
    }
}

#[test]
fn an_image_has_the_code_where_the_answer_says() {
    let mut scene = Scene::new(MIB);
    let bytes: Vec<u8> = (0..200).collect();
    scene.load(0x7f00_0000_0040, "first", &bytes);
    let place = scene.image(1, 0x7f00_0000_0050).expect("an image");
    assert_eq!(place.address, 0x1040);
    scene.apply();
    let image = scene.folder.values().next().expect("an image");
    assert_eq!(image[0x1040..][..200], bytes);
    assert!(image.windows(5).any(|window| window == b"first"));
    // The image is made once: other clients, and the same code in other processes, get the same one.
    scene.process(2, 1001);
    for pid in [1, 2, 1] {
        assert_eq!(scene.image(pid, 0x7f00_0000_0040).as_ref(), Some(&place));
        assert_eq!(scene.table.images.take_changes(), []);
    }
    // Elsewhere in the process it is the same, but not elsewhere in its page.
    scene.load(0x7f00_0001_3040, "first", &bytes);
    assert_eq!(scene.image(1, 0x7f00_0001_3040).as_ref(), Some(&place));
    scene.load(0x7f00_0002_3050, "first", &bytes);
    let other = scene.image(1, 0x7f00_0002_3050).expect("an image");
    assert!(other.build_id != place.build_id && other.address == 0x1050, "{other:?}");
}

#[test]
fn an_image_is_named_when_it_is_written() {
    let mut scene = Scene::new(MIB);
    scene.load(0x4000, "code", &[0xc3]);
    let address = Address { pid: 1, start: None, address: 0x4000, time: None };
    let request = Request { version: VERSION, id: 1, ask: Ask::Resolve(vec![address]) };
    let answer = |scene: &mut Scene, may_wait| {
        scene.now += 1_000_000_000;
        let answer = scene.table.answer(ROOT, &request, may_wait, scene.now)?;
        let Content::Resolved(mut resolved) = answer.content else { panic!("no answer") };
        let Resolved::Code(code) = resolved.remove(0) else { panic!("no code") };
        Some(code.image)
    };
    // It waits for the disk, but not for ever.
    assert_eq!(answer(&mut scene, true), None);
    assert_eq!(answer(&mut scene, false), Some(None));
    assert_eq!((scene.table.counts.requests, scene.table.counts.addresses), (1, 1));
    let [ImageChange::Write { id, content }] = &scene.table.images.take_changes()[..] else {
        panic!("nothing is written")
    };
    // The disk is full.
    scene.table.images.failed(*id, content.len() as u64);
    assert_eq!(answer(&mut scene, true), Some(None));
    scene.table.images.resume();
    assert_eq!(answer(&mut scene, true), None);
    scene.apply();
    let named = answer(&mut scene, true).flatten().expect("an image");
    assert!(scene.has(&named));
}

#[test]
fn code_without_bytes_has_names_alone() {
    let mut scene = Scene::new(MIB);
    scene.loaded.push(scene.scribe.load(&Code::at(0x4010, 64).named("of a name")));
    assert_eq!(scene.image(1, 0x4020).map(|place| place.address), Some(0x1010));
    scene.apply();
    let image = scene.folder.values().next().expect("an image");
    assert_eq!(image[0x1000..][..0x50], [0; 0x50]);
    assert!(image.windows(9).any(|window| window == b"of a name"));
}

#[test]
fn code_of_any_size_and_other_askers_have_none() {
    let mut scene = Scene::new(MIB);
    scene.loaded.push(scene.scribe.load(&Code::at(0x50_0000, 5 << 20).named("hole")));
    scene.load(0x4000, "code", &[0xc3]);
    assert_eq!(scene.image(1, 0x50_0000), None);
    assert_eq!(scene.table.images.take_changes(), []);
    // The owner of the process may ask, but the folder is not for one user.
    let owner = Peer { user: 1000, sees_all: false };
    assert_eq!(scene.ask(owner, 1, &[0x4000]).remove(0).image, None);
    assert_eq!(scene.table.images.take_changes(), []);
    // That it was described without an image does not matter.
    assert!(scene.image(1, 0x4000).is_some());
    scene.apply();
    assert_eq!(scene.ask(owner, 1, &[0x4000]).remove(0).image, None);
    // Without a folder there are no images.
    let mut without = Scene::new(0);
    without.load(0x4000, "code", &[0xc3]);
    assert_eq!(without.image(1, 0x4000), None);
}

#[test]
fn the_oldest_make_way() {
    let mut scene = Scene::new(8 * IMAGE);
    scene.process(3, 0);
    let places: Vec<ImagePlace> = (0..20_u64)
        .map(|n| {
            scene.load(n << 16, &format!("code {n}"), &[n as u8; 64]);
            // The first one is used all the time.
            scene.image(3, 0);
            let place = scene.image(3, n << 16).expect("an image");
            scene.apply();
            assert!(scene.table.images.size().1 <= 8 * IMAGE);
            place
        })
        .collect();
    let there: Vec<usize> = (0..20).filter(|&n| scene.has(&places[n])).collect();
    assert_eq!(there, [0, 13, 14, 15, 16, 17, 18, 19]);
    // One that is gone is made again, and is the same.
    assert_eq!(scene.image(3, 1 << 16).as_ref(), Some(&places[1]));
    scene.apply();
    assert!(scene.has(&places[1]) && !scene.has(&places[13]));
    assert_eq!(scene.table.images.counts().removed, 13);
}

#[test]
fn a_user_has_a_share() {
    let mut scene = Scene::new(8 * IMAGE);
    scene.process(3, 0);
    scene.load(0, "of root", &[1; 64]);
    let of_root = scene.image(3, 0).expect("an image");
    for n in 1..20_u64 {
        scene.load(n << 16, &format!("code {n}"), &[n as u8; 64]);
        assert!(scene.image(1, n << 16).is_some());
        scene.apply();
    }
    assert!(scene.has(&of_root));
    assert_eq!(scene.folder.len(), 3);
    // One image is no larger than that, and many at once are not either.
    scene.load(1 << 30, "large", &[7; 3 * IMAGE as usize]);
    assert_eq!(scene.image(3, 1 << 30), None);
    assert_eq!(scene.table.images.counts().left_out, 1);
    let addresses: Vec<u64> = (1..20).map(|n| n << 16).collect();
    let answers = scene.ask(ROOT, 1, &addresses);
    scene.apply();
    let mut named = answers.iter().filter_map(|code| code.image.as_ref());
    assert!(named.all(|place| scene.has(place)), "what is answered is there");
    let last = scene.image(1, addresses[18]).expect("an image");
    assert!(scene.has(&last));
}

#[test]
fn what_was_there_before_counts() {
    let mut scene = Scene::new(4 * IMAGE);
    let old = |n: u8| BuildId([n; 20]);
    for n in 0..6 {
        scene.folder.insert(old(n), Vec::new());
        scene.table.images.found(old(n), IMAGE);
    }
    scene.apply();
    assert_eq!(scene.folder.keys().copied().collect::<Vec<_>>(), [2, 3, 4, 5].map(old));
    scene.load(0, "code", &[1; 64]);
    let place = scene.image(1, 0).expect("an image");
    scene.apply();
    assert!(scene.has(&place) && !scene.folder.contains_key(&old(2)));
    // An image that is known is not written again.
    let mut again = Scene::new(4 * IMAGE);
    let (id, content) = scene.folder.iter().next_back().expect("an image");
    let ours =
        scene.folder.iter().find(|(_, content)| !content.is_empty()).unwrap_or((id, content));
    again.folder.insert(*ours.0, ours.1.clone());
    again.table.images.found(*ours.0, ours.1.len() as u64);
    again.load(0, "code", &[1; 64]);
    assert_eq!(again.image(1, 0), Some(place));
    assert_eq!(again.table.images.take_changes(), []);
}

#[test]
fn nothing_is_made_after_a_failure_until_it_resumes() {
    let mut scene = Scene::new(MIB);
    scene.load(0x4000, "first", &[1]);
    scene.load(0x8000, "second", &[2]);
    scene.ask(ROOT, 1, &[0x4000]);
    let [ImageChange::Write { id, content }] = &scene.table.images.take_changes()[..] else {
        panic!("one image");
    };
    scene.table.images.failed(*id, content.len() as u64);
    for address in [0x4000, 0x8000, 0x8000] {
        assert_eq!(scene.image(1, address), None);
    }
    assert_eq!(scene.table.images.take_changes(), []);
    assert_eq!(scene.table.images.size(), (0, 0));
    scene.table.images.resume();
    let place = scene.image(1, 0x4000).expect("an image");
    assert_eq!(place.build_id, id.to_string());
    assert!(scene.image(1, 0x8000).is_some());
    scene.apply();
    // One that cannot be removed counts as long as it is there.
    let id = *scene.folder.keys().next().expect("an image");
    let before = scene.table.images.size();
    scene.table.images.not_removed(id, IMAGE);
    assert_eq!(scene.table.images.size(), before);
    scene.table.images.not_removed(BuildId([0; 20]), IMAGE);
    assert_eq!(scene.table.images.size().0, before.0 + 1);
}

#[test]
fn what_waits_is_bounded() {
    let mut scene = Scene::new(1 << 30);
    let bytes = vec![0x90; 3 << 20];
    for n in 0..40_u64 {
        scene.load(n << 32, &format!("code {n}"), &bytes);
        scene.ask(ROOT, 1, &[n << 32]);
        if n < 39 {
            // So that the log does not become full.
            scene.loaded.clear();
        }
    }
    let count = scene.table.images.size().0;
    assert!((21..=23).contains(&count), "{count} of 3 MiB each");
    scene.apply();
    assert!(scene.image(1, 39 << 32).is_some(), "space again");
}

#[test]
fn one_that_makes_way_while_it_is_written_is_removed() {
    let mut images = Images::new(MIB);
    let id = BuildId([7; 20]);
    // The list does not have it when it comes to be there.
    images.written(id, 100);
    assert_eq!(images.take_changes(), [ImageChange::Remove(id)]);
}
